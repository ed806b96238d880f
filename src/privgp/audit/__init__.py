"""Attacks on the promises."""

from privgp.audit.gaussian import TradeOff, trade_off

__all__ = ["TradeOff", "trade_off"]
