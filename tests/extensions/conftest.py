from tests.cli.conftest import coband as coband
