"""Dictionary of objects that are imported when they are asked for."""

import collections
import pkgutil


class LazyDictionary(collections.UserDict):
    """Dictionary of objects by their places, such as "tfnlp.models.bert:encode_bert"."""

    def __getitem__(self, key):
        return pkgutil.resolve_name(self.data[key])
