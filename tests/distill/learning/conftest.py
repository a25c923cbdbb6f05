"""A config of one layer, without dropout."""

import dataclasses

import pytest


@pytest.fixture(scope="session")
def small_config(tiny_config):
    return dataclasses.replace(tiny_config, num_layers=1, dropout=0.0, attention_dropout=0.0)
