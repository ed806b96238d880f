"""Private values outside the vault: followed from where they come in, and only handed on.

The walk knows a private value by where it comes from: a parameter of ``models`` or ``command`` with a
private name or a vault's type, a table just loaded, whatever the vault returns (except for ``RELEASED``),
and any name or attribute that these are assigned to. Such a value may be handed to the vault or to a
function that is watched itself, compared with None, counted, deleted, returned, and kept in an
attribute if it is an object of the vault's own. All else counts as computing on it. The tables below
are the exceptions, by the functions' names.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property

from tests.house.source import House, Module, room_of, within

WATCHED = ("models", "command", "server")
# Cells become numbers here: cast, split and joined, never computed on.
READING = ("privgp.command.io",)
# Modules that load whole tables, private columns included, by the functions TABLES.
LOADING = ("privgp.tables.source",)

UNAWARE = ("engine", "gp", "privacy", "plan", "release", "ledger")
UNHEARD = {"y", "X_val", "y_val", "outputs", "validation", "utilities", "private"}

PRIVATE_NAMES = {"y", "X_val", "y_val"}  # as users hand them in: what the vault hands on is sealed
TABLES = {"load"}

# Parameters with a private name that hold nothing private, and why.
PUBLIC_PARAMETERS = {
    "PrivateGridSearchCV.score y": "the caller's own records, as scikit-learn has it",
    "write_table frame": "what was released",
}
# Parameters that are private though their names do not state this.
PRIVATE_PARAMETERS = {
    "example_records X", "rehearse X", "KeptEstimator._prepare X", "SpendsAtFit._check_call X",
    "rehearsal_inputs X", "rehearse_update X", "_rehearse_choice X",
}  # fmt: skip
# Parameters that may hold private inputs and are not followed further, and why.
TRUSTED_PARAMETERS = {
    "_public_inputs X": "read only where no declared domain makes inputs private",
    "make_plan X": "with --protect records, which makes inputs private, it takes their number alone",
    "_measure X": "an update hands it on as it is: the vault reads it where it is private",
}
PLAIN = {"str", "int", "float", "bool", "Path"}  # words of the shell are no private values
# Functions that take public columns out of a table.
READERS = {
    "input_columns", "identifiers", "columns", "public_columns", "public_rows", "columns_to_keep",
    "null_words",
}  # fmt: skip
# Functions of the vault whose result may be published: noise or a private choice is in it, or it is
# about public arguments only.
RELEASED = {
    "measure", "measure_twice", "measure_loss", "kusner_search", "choose",
    "choose_by_validation", "choose_by_residuals", "choose_by_blocks", "measure_block_loss", "ask", "count_new",
    "person_ids", "person_codes", "table_people", "count_people", "column_names", "make_loss",
    "score_sensitivity", "parameters", "fingerprint", "class_texts", "complete_rows",
}  # fmt: skip
# Elements of a result that are public, by function and place.
PUBLIC_ELEMENTS = {
    ("root_utilities", 1), ("all_columns", 1), ("_inputs_and_people", 1),
    ("columns_to_fit", 0), ("columns_to_fit", 2), ("columns_to_fit", 3),
}  # fmt: skip
# Classes of the vault that hold nothing private.
PUBLIC_CLASSES = {"Loss", "Finished"}
# What may be asked of anything private: its length, the names and types of its columns, and of a kept
# state what was declared or published (``numbers`` are noisy).
PUBLIC_ATTRIBUTES = {
    "rows", "height", "model", "points", "answers", "guarantee", "stated", "names", "noise", "y_bounds",
    "norm", "seed", "epsilon", "delta", "sensitivity", "dominance", "dtype", "columns",
    "numbers", "most", "ask", "loss", "totals",
}  # fmt: skip
# Private objects may be given to these, which write them through the vault's own codecs.
KEEPERS = {"create"}
# Methods and functions that move cells of a table about, in READING only.
MOVING = {
    "cast", "to_list", "to_numpy", "astype", "append", "concatenate", "array", "Series",
    "DataFrame", "is_numeric", "is_integer", "is_float", "filter", "select",
}  # fmt: skip

# Places that still break the rule. Lines may only be removed.
LEFT: set[str] = set()

RAW, KEPT = 1, 2  # a private value; an object of the vault's that holds some
Node = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Function:
    module: Module
    owner: str  # the class, or nothing
    node: Node

    @property
    def title(self) -> str:
        return f"{self.owner}.{self.node.name}" if self.owner else self.node.name

    @cached_property
    def parameters(self) -> list[ast.arg]:
        return _parameters(self.node.args)

    @cached_property
    def nodes(self) -> tuple[ast.AST, ...]:
        return tuple(ast.walk(self.node))


def _parameters(args: ast.arguments) -> list[ast.arg]:
    return [*args.posonlyargs, *args.args, *args.kwonlyargs]


@cache
def functions_of(module: Module) -> tuple[Function, ...]:
    """Functions of the module and of its classes; what is nested in them belongs to them."""
    return tuple(_functions_of(module))


@cache
def _written(node: ast.AST) -> str:
    return ast.unparse(node)


def _functions_of(module: Module) -> Iterator[Function]:
    for node in module.tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield Function(module, "", node)
        elif isinstance(node, ast.ClassDef):
            for inner in node.body:
                if isinstance(inner, ast.FunctionDef | ast.AsyncFunctionDef):
                    yield Function(module, node.name, inner)


def private_in_public_rooms(house: House) -> set[str]:
    """Functions of rooms that no private value may enter with a parameter that is named like one."""
    return {
        f"{module.name}.{each.title} {parameter.arg}"
        for module in house.room(*UNAWARE)
        for each in functions_of(module)
        for parameter in each.parameters
        if parameter.arg in UNHEARD
    }


class Watch:
    """All private values of a house outside its vault, and what is done to them."""

    def __init__(self, house: House) -> None:
        self.house = house
        vault = list(house.room("vault"))
        self.vault_classes = {
            f"{module.name}.{node.name}"
            for module in vault
            for node in module.tree.body
            if isinstance(node, ast.ClassDef) and node.name not in PUBLIC_CLASSES
        }
        self.vault_functions = {
            f"{module.name}.{each.title}": each for module in vault for each in functions_of(module)
        }
        self.vault_fields = {
            name
            for module in vault
            for node in module.nodes
            if isinstance(node, ast.ClassDef)
            for name in self._objects_in(module, node)
        }
        self.functions = [each for m in house.room(*WATCHED) for each in functions_of(m)]
        self.by_name: dict[str, list[Function]] = {}
        for each in self.functions:
            self.by_name.setdefault(each.node.name, []).append(each)
        self.fields = self._fields_of_private_types()
        self.returned: dict[str, int] = {}  # by full name, what functions return
        self.flows = [Flow(self, each) for each in self.functions]
        before = -1
        while before != (now := sum(flow.size for flow in self.flows) + len(self.returned)):
            before = now
            for flow in self.flows:
                flow.spread()

    def violations(self) -> set[str]:
        """Every place where something is computed on a private value, as text."""
        return {found for flow in self.flows for found in flow.violations()}

    def _objects_in(self, module: Module, made: ast.ClassDef) -> Iterator[str]:
        """Attributes of a class of the vault that are objects of the vault themselves."""
        for node in ast.walk(made):
            if isinstance(node, ast.AnnAssign) and self.is_private_type(module, node.annotation):
                yield _written(node.target).removeprefix("self.")
            elif isinstance(node, ast.FunctionDef) and node.name == "__init__":
                yield from (
                    parameter.arg
                    for parameter in _parameters(node.args)
                    if self.is_private_type(module, parameter.annotation)
                )

    def what_returns(self, name: str) -> int:
        """What a function returns, or any method of that name where its owner is unknown."""
        if "." in name:
            return self.returned.get(name, 0)
        known = self.by_name.get(name, [])
        titles = (f"{each.module.name}.{each.title}" for each in known if each.owner)
        return max((self.returned.get(title, 0) for title in titles), default=0)

    def is_private_type(self, module: Module, annotation: ast.expr | None) -> bool:
        """Whether a class of the vault that holds private values is part of a type."""
        return any(module.bindings.get(word) in self.vault_classes for word in _words(annotation))

    def is_private(self, function: Function, parameter: ast.arg) -> bool:
        name = parameter.arg
        if f"{function.title} {name}" in PUBLIC_PARAMETERS:
            return False
        if f"{function.title} {name}" in PRIVATE_PARAMETERS:
            return True
        if name in PRIVATE_NAMES:
            return not _words(parameter.annotation) & PLAIN
        if self.is_private_type(function.module, parameter.annotation):
            return True
        if name == "frame":
            return room_of(function.module.name) in ("command", "server")
        return name == "X" and any(
            isinstance(node, ast.Call)
            and _written(node.func).endswith(("check_private_inputs", "seal_inputs"))
            and any(isinstance(arg, ast.Name) and arg.id == "X" for arg in node.args)
            for node in function.nodes
        )

    def _fields_of_private_types(self) -> set[tuple[str, str]]:
        """Room and name of attributes declared with a private type, in classes outside the vault."""
        return {
            (
                room_of(module.name),
                node.target.id if isinstance(node.target, ast.Name) else node.target.attr,
            )
            for module in self.house.room(*WATCHED)
            for node in module.nodes
            if isinstance(node, ast.AnnAssign) and self.is_private_type(module, node.annotation)
            if isinstance(node.target, ast.Attribute)
            or isinstance(module.parents[node], ast.ClassDef)
        }


class Flow:
    """One function, with what is nested in it: which names are private in it."""

    def __init__(self, watch: Watch, function: Function) -> None:
        self.watch, self.function, self.module = watch, function, function.module
        self.names: dict[str, int] = {}
        scopes = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
        inner = [node.args for node in function.nodes if isinstance(node, scopes)]
        for parameter in [each for args in inner for each in _parameters(args)]:
            if watch.is_private(function, parameter):
                kept = watch.is_private_type(self.module, parameter.annotation)
                self.names[parameter.arg] = KEPT if kept else RAW
        self.aliases = {
            node.targets[0].id: node.value
            for node in function.nodes
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
        }
        self.is_reader = function.node.name in READERS
        self.reads = any(within(self.module.name, each) for each in READING)
        self.room = room_of(self.module.name)

    @property
    def size(self) -> int:
        return sum(self.names.values()) + len(self.watch.fields)

    # what is private

    def spread(self) -> None:
        """Follow assignments once."""
        for node in self.function.nodes:
            if isinstance(node, ast.Assign):
                for target in node.targets:
                    self._bind(target, node.value)
            elif isinstance(node, ast.AnnAssign | ast.AugAssign | ast.NamedExpr):
                if node.value is not None:
                    self._bind(node.target, node.value)
            elif isinstance(node, ast.For | ast.comprehension):
                self._bind(node.target, node.iter)
            elif isinstance(node, ast.withitem) and node.optional_vars is not None:
                self._bind(node.optional_vars, node.context_expr)
            elif isinstance(node, ast.Return | ast.Yield) and node.value is not None:
                kind = self.kind(node.value)
                if kind and not self.is_reader:
                    self.watch.returned[f"{self.module.name}.{self.function.title}"] = kind
            elif isinstance(node, ast.Call) and _written(node.func).endswith(".append"):
                assert isinstance(node.func, ast.Attribute)
                if any(self.kind(arg) for arg in node.args):
                    self._mark(node.func.value, RAW)

    def _bind(self, target: ast.expr, value: ast.expr) -> None:
        if isinstance(target, ast.Tuple | ast.List):
            together = isinstance(value, ast.Tuple) and len(value.elts) == len(target.elts)
            called = {name.rpartition(".")[2] for name in self.callees(value)}
            for place, each in enumerate(target.elts):
                if together:
                    self._bind(each, value.elts[place])  # type: ignore[attr-defined]
                elif not any((name, place) in PUBLIC_ELEMENTS for name in called):
                    self._bind(each, value)
        elif kind := self.kind(value):
            self._mark(target, kind)

    def _mark(self, target: ast.expr, kind: int) -> None:
        if isinstance(target, ast.Starred):
            target = target.value
        if isinstance(target, ast.Name):
            self.names[target.id] = max(kind, self.names.get(target.id, 0))
        elif isinstance(target, ast.Attribute) and kind == KEPT:
            self.watch.fields.add((self.room, target.attr))

    def kind(self, node: ast.expr | None) -> int:
        """Whether an expression is private: 0, RAW or KEPT."""
        if node is None or isinstance(node, ast.Constant | ast.Lambda):
            return 0
        if isinstance(node, ast.Name):
            return self.names.get(node.id, 0)
        if isinstance(node, ast.Attribute):
            if node.attr in PUBLIC_ATTRIBUTES or node.attr.isupper():
                return 0
            if kind := self.kind(node.value):
                return KEPT if kind == KEPT and node.attr in self.watch.vault_fields else RAW
            # an attribute that begins with _ is known by its name in other rooms too
            rooms = WATCHED if node.attr.startswith("_") else (self.room,)
            return KEPT if any((room, node.attr) in self.watch.fields for room in rooms) else 0
        if isinstance(node, ast.Call):
            return self._kind_of_call(node)
        if isinstance(node, ast.Compare) and _with_none(node):
            return 0
        if isinstance(node, ast.IfExp):
            return max(self.kind(node.body), self.kind(node.orelse))
        if isinstance(node, ast.BoolOp):
            return max(self.kind(each) for each in node.values)
        if isinstance(node, ast.ListComp | ast.GeneratorExp | ast.SetComp):
            return self.kind(node.elt)
        children = (n for n in ast.iter_child_nodes(node) if isinstance(n, ast.expr))
        return RAW if any(self.kind(child) for child in children) else 0

    def _kind_of_call(self, call: ast.Call) -> int:
        names = self.callees(call)
        last = {name.rpartition(".")[2] for name in names}
        if last & (RELEASED | READERS | PUBLIC_CLASSES | {"len", "isinstance", "fit", "update"}):
            return 0
        if last & TABLES and any(within(name, each) for name in names for each in LOADING):
            return RAW
        if last & {"replace"} and call.args:
            return self.kind(call.args[0])
        if last == {"getattr"}:
            owner, name, *default = call.args
            named = ast.Attribute(owner, str(getattr(name, "value", "")))
            return max(self.kind(each) for each in (named, *default))
        vault = {name for name in names if room_of(name) == "vault"}
        if vault & self.watch.vault_classes:
            return KEPT
        if vault:
            made = [self.watch.vault_functions.get(name) for name in vault]
            objects = any(
                each
                and (
                    self.watch.is_private_type(each.module, each.node.returns)
                    or "Self" in _words(each.node.returns)
                )
                for each in made
            )
            return KEPT if objects else RAW
        found = max((self.watch.what_returns(name) for name in names), default=0)
        if found:
            return found
        if isinstance(call.func, ast.Attribute) and self.kind(call.func.value):
            return RAW
        if self.reads and last & MOVING:
            return RAW if any(self.kind(arg) for arg in call.args) else 0
        return 0

    def callees(self, node: ast.expr) -> set[str]:
        """Full names of what an expression may call; of an unknown object's method, its name."""
        return self._stands_for(node.func) if isinstance(node, ast.Call) else set()

    def _stands_for(self, node: ast.expr, depth: int = 3) -> set[str]:
        if isinstance(node, ast.Name):
            if node.id in self.module.bindings:
                return {self.module.bindings[node.id]}
            if node.id in self.aliases and depth:
                return self._stands_for(self.aliases[node.id], depth - 1)
            return {node.id}
        if isinstance(node, ast.IfExp):
            return self._stands_for(node.body, depth) | self._stands_for(node.orelse, depth)
        if isinstance(node, ast.Subscript):
            return self._stands_for(node.value, depth)
        if isinstance(node, ast.Attribute):
            owner = node.value
            if isinstance(owner, ast.Name) and owner.id in ("self", "cls"):
                title = f"{self.function.owner}.{node.attr}"
                own = any(
                    each.module is self.module and each.title == title
                    for each in self.watch.by_name.get(node.attr, [])
                )
                return {f"{self.module.name}.{title}" if own else node.attr}  # or inherited
            if isinstance(owner, ast.Name) and owner.id in self.module.bindings:
                return {f"{self.module.bindings[owner.id]}.{node.attr}"}
            return {node.attr}
        return set()

    # what is done to it

    def violations(self) -> Iterator[str]:
        if self.is_reader:
            return
        for node in self.function.nodes:
            if isinstance(node, ast.expr) and self.kind(node) and not self._may(node):
                yield f"{self.module.name}.{self.function.title}: {_written(self._parent(node))}"

    def _parent(self, node: ast.AST) -> ast.AST:
        return self.module.parents[node]

    def _may(self, node: ast.expr) -> bool:
        """Whether what surrounds a private expression only hands it on."""
        if isinstance(getattr(node, "ctx", None), ast.Store | ast.Del):
            return True
        parent = self._parent(node)
        if isinstance(parent, ast.Call):
            return self._may_call(parent, node)
        if isinstance(parent, ast.keyword):
            return self._may_call(self._parent(parent), node)  # type: ignore[arg-type]
        if isinstance(parent, ast.Assign | ast.AnnAssign):
            targets = parent.targets if isinstance(parent, ast.Assign) else [parent.target]
            return all(self._may_hold(target, node) for target in targets)
        if isinstance(parent, ast.Return | ast.Yield):
            return self._may_return(node)
        if isinstance(parent, ast.Compare):
            return _with_none(parent)
        if isinstance(parent, ast.IfExp):
            return node is not parent.test or self.reads  # whether there are any
        if isinstance(parent, ast.comprehension | ast.For | ast.Subscript | ast.Slice):
            return self.reads
        if isinstance(parent, ast.BoolOp | ast.Lambda):
            return self.kind(node) == KEPT  # whether there is one; drawn once it is paid for
        if isinstance(parent, ast.BinOp | ast.UnaryOp | ast.If | ast.While | ast.Assert):
            return False
        if isinstance(
            parent, ast.FormattedValue | ast.Raise | ast.AugAssign | ast.Dict | ast.Await
        ):
            return False
        return isinstance(
            parent,
            ast.Attribute | ast.Tuple | ast.List | ast.Starred | ast.Expr | ast.NamedExpr
            | ast.ListComp | ast.GeneratorExp | ast.withitem,
        )  # fmt: skip

    def _may_hold(self, target: ast.expr, value: ast.expr) -> bool:
        if isinstance(target, ast.Tuple | ast.List):
            values = value.elts if isinstance(value, ast.Tuple) else [value] * len(target.elts)
            return all(map(self._may_hold, target.elts, values))
        if isinstance(target, ast.Attribute):
            return self.kind(value) == KEPT or not self.kind(value)
        return isinstance(target, ast.Name)

    def _may_return(self, value: ast.expr) -> bool:
        """Not from what users call on a model."""
        is_method = bool(self.function.owner) and room_of(self.module.name) == "models"
        return not (is_method and not self.function.node.name.startswith("_"))

    def _may_call(self, call: ast.Call, node: ast.expr) -> bool:
        if node is call.func:  # a method of something private
            assert isinstance(node, ast.Attribute)
            if self.kind(node.value) == KEPT:
                return True
            return self.reads and node.attr in MOVING
        names = self.callees(call)
        last = {name.rpartition(".")[2] for name in names}
        if all(room_of(name) == "vault" for name in names) and names:
            return True
        if last <= {"len", "isinstance", "fit", "update"} | KEEPERS | READERS:
            return True
        if last == {"validate_data"}:
            return any(word.arg == "skip_check_array" for word in call.keywords)
        if last == {"replace"}:
            return bool(call.args) and self.kind(call.args[0]) == KEPT
        if last == {"getattr"}:
            return self.kind(node) == KEPT
        if self.reads and last <= MOVING:
            return True
        if isinstance(call.func, ast.Attribute) and self.kind(call.func.value) == KEPT:
            return True
        return bool(names) and all(self._takes(name, call, node) for name in names)

    def _takes(self, name: str, call: ast.Call, node: ast.expr) -> bool:
        """Whether a function of the project, or a class, takes this argument as a private one."""
        last = name.rpartition(".")[2]
        known = [
            each
            for each in self.watch.by_name.get(last, [])
            if "." not in name or f"{each.module.name}.{each.title}" == name
        ]
        if known:
            return all(self._taken(each, call, node) for each in known)
        module = self.watch.house.module_of(name)
        return module is not None and self.watch.is_private_type(
            self.watch.house.modules[module], self._field_of(name, call, node)
        )

    def _taken(self, function: Function, call: ast.Call, node: ast.expr) -> bool:
        parameters = function.parameters
        if function.owner and parameters and parameters[0].arg in ("self", "cls"):
            parameters = parameters[1:]
        word = next((w.arg for w in call.keywords if w.value is node), None)
        place = call.args.index(node) if node in call.args else len(parameters)  # or in a dict
        chosen = parameters[place : place + 1]
        if word is not None:
            chosen = [parameter for parameter in parameters if parameter.arg == word]
        return any(
            f"{function.title} {each.arg}" in TRUSTED_PARAMETERS
            or self.watch.is_private(function, each)
            for each in chosen
        )

    def _field_of(self, name: str, call: ast.Call, node: ast.expr) -> ast.expr | None:
        """The type of the field that a dataclass outside the vault keeps an argument in."""
        module = self.watch.house.module_of(name)
        if module is None:
            return None
        for made in self.watch.house.modules[module].tree.body:
            if isinstance(made, ast.ClassDef) and f"{module}.{made.name}" == name:
                fields = [f for f in made.body if isinstance(f, ast.AnnAssign)]
                word = next((w.arg for w in call.keywords if w.value is node), None)
                if word is not None:
                    return next((f.annotation for f in fields if _written(f.target) == word), None)
                place = call.args.index(node) if node in call.args else len(fields)
                return fields[place].annotation if place < len(fields) else None
        return None


def _words(annotation: ast.expr | None) -> set[str]:
    """The names in a type, quoted ones too."""
    if annotation is None:
        return set()
    nodes = list(ast.walk(annotation))
    words = {node.id for node in nodes if isinstance(node, ast.Name)}
    return words | {str(node.value) for node in nodes if isinstance(node, ast.Constant)}


def _with_none(node: ast.Compare) -> bool:
    return all(isinstance(op, ast.Is | ast.IsNot) for op in node.ops) and all(
        isinstance(each, ast.Constant) and each.value is None for each in node.comparators
    )
