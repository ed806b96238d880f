"""Attacks on the guarantees, on public or simulated data."""

from privgp.audit.mechanisms import trade_off
from privgp.audit.members import membership
from privgp.audit.promises import Promise, path_promise
from privgp.audit.result import Membership, TradeOff

__all__ = ["Membership", "Promise", "TradeOff", "membership", "path_promise", "trade_off"]
