"""A small file that knows the newest head of every account: an older copy of the ledger, put back, is
behind it. It holds numbers and hashes only. Keep it where the ledger's backups are not."""

import json
import os
from collections.abc import Mapping
from pathlib import Path

from privgp.ledger.errors import LedgerError, LedgerTampered
from privgp.storage.parts import part_beside
from privgp.storage.state_file import lock_folder

Known = dict[str, tuple[int, str]]  # of a dataset: the number of its newest entry, and the head
PUT_BACK = (
    "the ledger of dataset {!r} lacks what its anchor knows: an older copy was put back, or rows are "
    "gone"
)


class Anchor:
    """The newest head of every account, in a file that is replaced as a whole.

    Parameters
    ----------
    path : path of the file, which need not exist

    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def known(self) -> Known:
        """By dataset the number of its newest entry and the head; empty if there is no file.

        Raises
        ------
        LedgerTampered
            The file is damaged.

        """
        try:
            text = self.path.read_text(encoding="utf-8")
        except FileNotFoundError:
            return {}
        except OSError:
            raise LedgerError(f"the anchor '{self.path}' cannot be read.") from None
        try:
            return {
                str(name): (int(at), str(head)) for name, (at, head) in json.loads(text).items()
            }
        except (ValueError, TypeError, AttributeError):
            raise LedgerTampered(f"the anchor '{self.path}' is damaged.") from None

    def renew(self, dataset: str, number: int, head: str) -> None:
        """Know this entry, unless a later one is known. Called once it is committed.

        Parameters
        ----------
        dataset
            Name of the account.
        number
            Number of the entry, 0 for the account itself.
        head
            Its hash.

        """
        try:
            with lock_folder(self.path) as folder:
                known = self.known()
                if known.get(dataset, (-1, ""))[0] >= number:
                    return
                text = json.dumps({**known, dataset: (number, head)}, indent=1)
                with part_beside(self.path) as part:
                    with open(part, "w", encoding="utf-8") as file:
                        file.write(text)
                        file.flush()
                        os.fsync(file.fileno())
                    os.replace(part, self.path)
                os.fsync(folder)
        except OSError:
            raise LedgerError(f"the anchor '{self.path}' cannot be written.") from None


def check_known(dataset: str, known: tuple[int, str] | None, heads: Mapping[int, str]) -> None:
    """Refuse a chain that lacks the entry which the anchor knows; LedgerTampered.

    Parameters
    ----------
    dataset
        Named in the error.
    known
        Number and head of the newest known entry, or None.
    heads
        Hashes of the chain, by entry number.

    """
    if known is not None and heads.get(known[0]) != known[1]:
        raise LedgerTampered(PUT_BACK.format(dataset) + ".")
