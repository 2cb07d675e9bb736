"""The orders kind: one shard a calendar day, read by key in pages.

Start at `kind.OrdersKind`. `plan` fixes which rows an export holds, `ordering` knows how they are ordered and bounded,
`pages` reads them with one statement a page, `cells` spells each type in the SQL of each database, `guards` and `router` keep the source read-only,
`rules` refuses a declaration that cannot work.
"""

from exports.kinds.orders.kind import OrdersKind

__all__ = ["OrdersKind"]
