"""django-import-export: `ModelResource.export()`, written as CSV or XLSX by the name of the output file."""

from tests.bench.peers.common import COLUMNS, arguments, order_model

if __name__ == "__main__":
    args = arguments()
    Order = order_model(args.url, "import_export")
    from import_export import resources  # needs configured settings
    from import_export.formats.base_formats import CSV, XLSX

    class OrderResource(resources.ModelResource):
        class Meta:
            model = Order
            fields = COLUMNS
            export_order = COLUMNS

    data = OrderResource().export(Order.objects.order_by("created_at", "id"))
    if args.out.endswith(".xlsx"):
        with open(args.out, "wb") as out:
            out.write(XLSX().export_data(data))
    else:
        with open(args.out, "w", newline="", encoding="utf-8") as out:
            out.write(CSV().export_data(data))
