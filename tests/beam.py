"""Why tests of Apache Beam may skip."""

NO_BEAM = (
    "apache-beam is not installed: version 2.77 needs protobuf below 7, pyarrow below 26, pillow "
    "below 13 and python-dateutil below 3; `make beam` runs these tests in its own environment"
)
