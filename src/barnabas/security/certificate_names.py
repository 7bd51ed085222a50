"""Reads the subject of an X.509 certificate, in the form of Java and Kafka, and its expiry.

Python's `ssl` gives the names of a certificate without the types of their strings, which Java's
form depends on. So this reads the certificate itself: a certificate that OpenSSL has verified is a
sequence of tagged lengths (X.690, DER), of which few are needed.

The form is RFC 2253 as `X500Principal.getName()` prints it: the most specific name first, joined
with commas without spaces; `CN`, `OU` and seven more by their keywords, all others as the dotted
number with the encoded value in hexadecimal digits. Special characters in a value are escaped, so
a certificate for `alice,OU=admin` has one name, `CN=alice\\,OU\\=admin`, not two.
"""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import NamedTuple

SEQUENCE = 0x30
OBJECT_ID = 0x06
UTC_TIME = 0x17
TEXTS = {
    0x0C: "utf-8",
    0x13: "ascii",
    0x14: "latin-1",
    0x16: "ascii",
    0x1B: "ascii",
    0x1C: "utf-32-be",
    0x1E: "utf-16-be",
}
"""The types of strings that Java prints as text, with their encodings."""
KEYWORDS = {
    "2.5.4.3": "CN",
    "2.5.4.6": "C",
    "2.5.4.7": "L",
    "2.5.4.8": "ST",
    "2.5.4.9": "STREET",
    "2.5.4.10": "O",
    "2.5.4.11": "OU",
    "0.9.2342.19200300.100.1.1": "UID",
    "0.9.2342.19200300.100.1.25": "DC",
}
ESCAPED = frozenset(',=+<>#;"\\')
EXPLICIT_VERSION = 0xA0


class CertificateError(ValueError):
    """The bytes are not a certificate."""


class Element(NamedTuple):
    """One element of the encoding."""

    tag: int
    content: bytes
    encoded: bytes
    """The whole element, with its tag and its length."""


class Certificate(NamedTuple):
    """The facts in a certificate that the broker needs."""

    subject: str
    not_after_ms: int
    """When it expires, in wall-clock time."""


def read_certificate(encoded: bytes) -> Certificate:
    """Read a certificate in DER; raise `CertificateError` if it is invalid."""
    try:
        (certificate,) = _elements(encoded)
        fields = list(_elements(next(_elements(certificate.content)).content))
        if fields[0].tag == EXPLICIT_VERSION:
            fields.pop(0)
        # serial number, signature algorithm, issuer, validity, subject
        validity, subject = fields[3], fields[4]
        _, not_after = _elements(validity.content)
        return Certificate(_name(subject), _time_ms(not_after))
    except (IndexError, ValueError, StopIteration) as error:
        raise CertificateError(f"the bytes are no certificate: {error}") from None


def _elements(content: bytes) -> Iterator[Element]:
    """Return the elements that follow each other."""
    position = 0
    while position < len(content):
        start, tag, length = position, content[position], content[position + 1]
        position += 2
        if length & 0x80:
            count = length & 0x7F
            length = int.from_bytes(content[position : position + count])
            position += count
        end = position + length
        if end > len(content):
            raise CertificateError("an element is longer than the one around it")
        yield Element(tag, content[position:end], content[start:end])
        position = end


def _name(subject: Element) -> str:
    parts = [_relative_name(part) for part in _elements(subject.content)]
    return ",".join(reversed(parts))


def _relative_name(part: Element) -> str:
    return "+".join(_attribute(each) for each in _elements(part.content))


def _attribute(pair: Element) -> str:
    kind, value = _elements(pair.content)
    number = _dotted(kind.content)
    keyword = KEYWORDS.get(number)
    encoding = TEXTS.get(value.tag)
    if keyword is None or encoding is None:
        return f"{keyword or number}=#{value.encoded.hex()}"
    return f"{keyword}={_escaped(value.content.decode(encoding))}"


def _escaped(text: str) -> str:
    inner = text.strip(" \r")
    lead = text[: len(text) - len(text.lstrip(" \r"))]
    trail = text[len(lead) + len(inner) :]
    parts = [f"\\{each}" for each in lead]
    for each in inner:
        if each in ESCAPED:
            parts.append(f"\\{each}")
        else:
            parts.append("\\00" if each == "\0" else each)
    parts += [f"\\{each}" for each in trail]
    return "".join(parts)


def _dotted(encoded: bytes) -> str:
    """Return an object identifier in numbers and dots."""
    numbers, number = list[int](), 0
    for each in encoded:
        number = number << 7 | each & 0x7F
        if not each & 0x80:
            numbers.append(number)
            number = 0
    first = min(numbers[0] // 40, 2)
    return ".".join(map(str, (first, numbers[0] - 40 * first, *numbers[1:])))


def _time_ms(time: Element) -> int:
    text = time.content.decode("ascii")
    if time.tag == UTC_TIME:  # two digits of a year: RFC 5280, 4.1.2.5.1
        text = ("20" if int(text[:2]) < 50 else "19") + text
    parsed = datetime.strptime(text, "%Y%m%d%H%M%SZ").replace(tzinfo=UTC)
    return int(parsed.timestamp()) * 1000
