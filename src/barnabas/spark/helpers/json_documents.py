"""Parses JSON text into fields with Spark expressions, and says why a document is invalid.

from_json ignores text after the document and bytes that are not UTF-8, and a field of another type
is null. Two tricks make it strict with a single parse:

- The text becomes the first of two elements of an array. The second has a random name in it, so
  that no text can contain it. Text after the document is then an error or an additional element,
  and text that closes the array itself leaves the second element outside.
- `inline(array(...))` is between the parse and its use. Without it Spark pushes the filter of a
  branch below the projection together with the parse, and parses every value twice (measured:
  twice the time).
"""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING
from uuid import uuid4

from pyspark.sql import functions as F  # noqa: N812 - the usual alias
from pyspark.sql.types import ArrayType, BooleanType, StringType, StructField, StructType

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

DECODED, REASON, DETAIL = "__decoded", "__reason", "__detail"
"""The columns that a decoding adds."""
SECRET = uuid4().hex
DOCUMENTS, LAST, CORRUPT = f"__documents_{SECRET}", f"__last_{SECRET}", "__corrupt"
SHOWN_CHARACTERS = 100


def decoded_json(
    frame: "DataFrame", column: str, fields: StructType, options: Mapping[str, str]
) -> "DataFrame":
    """Add the fields as one column, and reason and detail if there are none."""
    text = F.col(f"`{column}`").cast("string")
    wrapped = F.concat(F.lit(f'{{"{DOCUMENTS}":['), text, F.lit(f',{{"{LAST}":true}}]}}'))
    element = StructType([*fields, StructField(LAST, BooleanType())])
    schema = StructType().add(DOCUMENTS, ArrayType(element)).add(CORRUPT, StringType())
    strict = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": CORRUPT}
    parsed = F.from_json(wrapped, schema, {"allowSingleQuotes": "false", **options, **strict})
    rows = frame.select("*", F.inline(F.array(parsed)))
    rows = rows.withColumn(DECODED, F.try_element_at(DOCUMENTS, F.lit(1)).dropFields(LAST))
    rows = rows.withColumn(REASON, _reason(text, fields))
    rows = rows.withColumn(DETAIL, _detail(text, fields))
    return rows.drop(DOCUMENTS, CORRUPT)


def _reason(text: "Column", fields: StructType) -> "Column":
    documents = F.col(DOCUMENTS)
    is_last = F.try_element_at(documents, F.lit(2)).getField(LAST)
    is_one = (F.size(documents) == 2) & F.coalesce(is_last, F.lit(False))
    lacks = F.lit(False)
    for _, is_missing in _required(fields, F.col(DECODED)):
        lacks |= is_missing
    is_other = ~F.ltrim(text).startswith("{") & F.try_parse_json(text).isNotNull()
    return (
        F.when(text.isNull(), "no-value")
        .when(~F.is_valid_utf8(text), "bad-utf8")
        .when(documents.isNull() & is_other, "not-an-object")
        .when(documents.isNull() | ~is_one, "bad-json")
        .when(F.col(CORRUPT).isNotNull(), "wrong-type")
        .when(F.col(DECODED).isNull(), "not-an-object")
        .when(lacks, "missing-field")
    )


def _detail(text: "Column", fields: StructType) -> "Column":
    reason = F.col(REASON)
    return (
        F.when(reason == "no-value", "the value is null")
        .when(reason == "bad-utf8", "the value is not UTF-8")
        .when(reason == "bad-json", "the value is not one whole JSON document")
        .when(reason == "not-an-object", "the value is JSON, but not an object")
        .when(reason == "wrong-type", _wrong_types(text, fields))
        .when(reason == "missing-field", _missing(fields))
    )


def _wrong_types(text: "Column", fields: StructType) -> "Column":
    """Return the fields that the document has but that could not be read."""
    said = []
    for field in fields:
        if "'" in field.name:
            continue
        found = F.get_json_object(text, f"$['{field.name}']")
        sentence = F.concat(
            F.lit(f"{field.name} is "),
            F.substring(found, 1, SHOWN_CHARACTERS),
            F.lit(f", not {field.dataType.simpleString()}"),
        )
        came_to_nothing = F.col(DECODED).getField(field.name).isNull() & found.isNotNull()
        said.append(F.when(came_to_nothing, sentence))
    joined = F.concat_ws("; ", *said)
    return F.when(joined != "", joined).otherwise("a field within a field is of another type")


def _missing(fields: StructType) -> "Column":
    named = (
        F.when(is_missing, F.lit(name)) for name, is_missing in _required(fields, F.col(DECODED))
    )
    return F.concat(F.lit("missing or null: "), F.concat_ws(", ", *named))


def _required(
    fields: StructType, parent: "Column", path: str = ""
) -> Iterator[tuple[str, "Column"]]:
    """Yield each required field, and the condition that it is missing."""
    for field in fields:
        value = parent.getField(field.name)
        if not field.nullable:
            yield path + field.name, parent.isNotNull() & value.isNull()
        if isinstance(field.dataType, StructType):
            yield from _required(field.dataType, value, f"{path}{field.name}.")
