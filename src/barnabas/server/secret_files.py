"""Reads the secrets that settings name: from a file, or from an environment variable."""

import os
from pathlib import Path

from barnabas.model.errors import ConfigError
from barnabas.model.security_settings import Secret


def read_secret(secret: Secret) -> str:
    """Return a secret without the end of its line; no error message contains it."""
    kind, where = secret
    if kind == "variable":
        found = os.environ.get(where)
        if found is None:
            raise ConfigError(f"the environment variable {where}, which has a secret, is not set")
        return found
    try:
        return Path(where).read_text(encoding="utf-8").rstrip("\r\n")
    except OSError as error:
        raise ConfigError(f"{where}, which has a secret: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ConfigError(f"{where}, which has a secret, is not UTF-8") from None
