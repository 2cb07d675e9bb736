"""The columns of the orders file, declared once. The key comes first: pages are taken apart by it."""

from exports.contracts import CellType, Column, PersonalData

ORDER_COLUMNS = (
    Column("id", "订单ID", "ID", CellType.IDENTIFIER, width=14),
    Column("order_no", "订单号", "Order number", CellType.IDENTIFIER, width=24),
    Column("created_at", "下单时间", "Created at", CellType.DATETIME, width=20),
    Column("paid_at", "支付时间", "Paid at", CellType.DATETIME, width=20, nullable=True),
    Column("status", "状态", "Status", CellType.ENUM, width=12),
    Column("customer_name", "客户姓名", "Customer", CellType.TEXT, width=12, personal=PersonalData.NAME),
    Column("phone", "手机号", "Phone", CellType.IDENTIFIER, width=16, personal=PersonalData.PHONE),
    Column("address", "收货地址", "Address", CellType.TEXT, width=48, personal=PersonalData.ADDRESS),
    Column("sku", "商品编码", "SKU", CellType.IDENTIFIER, width=14),
    Column("quantity", "数量", "Quantity", CellType.INTEGER, width=8),
    Column("unit_price", "单价", "Unit price", CellType.MONEY, scale=2, width=12),
    Column("total", "总金额", "Total", CellType.MONEY, scale=2, width=12),
    Column("currency", "币种", "Currency", CellType.ENUM, width=8),
    Column("remark", "备注", "Remark", CellType.TEXT, width=32, nullable=True),
)
