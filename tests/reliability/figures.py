"""What a long run has counted, in a line that `make soak` shows."""

MARK = "figure: "


def tell(text: str) -> None:
    print(f"\n{MARK}{text}", flush=True)  # noqa: T201  # shown by `pytest -s` and `make soak`
