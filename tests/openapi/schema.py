"""Holds a daemon's description to the schema of OpenAPI 3.1. A description that says no version of itself must fail, so that
the check is known to be one."""

import json
import sys
from urllib.request import urlopen

from openapi_spec_validator import OpenAPIV31SpecValidator

with urlopen(f"{sys.argv[1]}/openapi.json", timeout=10) as answer:
    description = json.load(answer)
OpenAPIV31SpecValidator(description).validate()

del description["info"]["version"]
if OpenAPIV31SpecValidator(description).is_valid():
    sys.exit("a description without a version passes for OpenAPI 3.1")
print("the description is OpenAPI 3.1")
