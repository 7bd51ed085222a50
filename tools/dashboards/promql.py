"""Expressions that many panels use. `@` stands for the matchers of the dashboard."""

from tools.dashboards.grafana import Query

QUANTILES = ((0.5, "median"), (0.99, "99 %"), (0.999, "99.9 %"))


def rate(name: str, more: str = "", *, by: str = "") -> str:
    """Return the sum of a counter's rate, for each value of the labels `by`."""
    over = f"sum by ({by}) " if by else "sum"
    return f"{over}(rate({name}{_matchers(more)}[$__rate_interval]))"


def quantile(q: float, name: str, more: str = "", *, by: str = "") -> str:
    """Return a quantile of a histogram, for each value of the labels `by`."""
    labels = f"{by}, le" if by else "le"
    buckets = f"rate({name}_bucket{_matchers(more)}[$__rate_interval])"
    return f"histogram_quantile({q}, sum by ({labels}) ({buckets}))"


def quantiles(name: str, more: str = "", *, count: int = 3) -> list[Query]:
    """Return the median and the high quantiles of a histogram."""
    return [Query(quantile(q, name, more), said) for q, said in QUANTILES[:count]]


def _matchers(more: str) -> str:
    return "{@, " + more + "}" if more else "{@}"


def topk(count: int, expr: str) -> str:
    """Return the largest values of an expression."""
    return f"topk({count}, {expr})"
