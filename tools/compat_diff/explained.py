"""Every difference that is meant, with the sentence of docs/compatibility.md that says so."""

from tools.compat_diff.explaining import Explained

TABLE: tuple[Explained, ...] = (
    Explained(
        sentence="A topic that is made on demand is in the first Metadata answer",
        apis="Metadata",
        path=r"topics\[\]\.error_code",
        when=lambda found, _: found.kafka in (3, 5) and found.barnabas == 0,
    ),
)
