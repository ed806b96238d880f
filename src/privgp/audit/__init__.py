"""Attacks on the promises, on public or made-up data."""

from privgp.audit.attack import trade_off
from privgp.audit.promises import Promise
from privgp.audit.result import TradeOff

__all__ = ["Promise", "TradeOff", "trade_off"]
