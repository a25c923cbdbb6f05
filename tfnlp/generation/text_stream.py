"""Text of ids while they are written: stop strings, and characters that are whole."""

# What decoders give for bytes that are no character, or none yet.
PART = "\ufffd"


class TextStream:
    """The text of one prompt, of which each token adds a piece.

    Args:
        text_of: function from a list of ids to their text.
        settings: a `SearchSettings`.
        on_token: function of a token's id and the text that it completes; or None.
    """

    def __init__(self, text_of, settings, on_token=None):
        self.text_of, self.settings, self.on_token = text_of, settings, on_token
        self._shown = ""

    def __call__(self, ids, last):
        """Give the newest token to `on_token`, and return whether a stop string has come.

        Pieces hold whole characters, and nothing that may be part of a stop string. Together they
        are the text.

        Args:
            ids: all ids so far, a list.
            last: whether the newest one ends the text.
        """
        written = ids[:-1] if ids[-1] in self.settings.ends else ids
        stop_strings = self.settings.stop_strings
        text = self.text_of(written)
        text, stopped = cut_at_stop(text if last else text.rstrip(PART), stop_strings)
        if self.on_token is not None:
            ready = text if last or stopped else settled(text, stop_strings)
            piece = ready[len(self._shown) :] if ready.startswith(self._shown) else ""
            self._shown += piece
            self.on_token(ids[-1], piece)
        return stopped


def cut_at_stop(text, stop_strings):
    """Return a text up to the first of the stop strings in it, and whether there is one."""
    places = [place for place in map(text.find, stop_strings) if place >= 0]
    return text[: min(places, default=None)], bool(places)


def settled(text, stop_strings):
    """Return an open text without the beginning of a stop string at its end."""
    begun = (
        size for stop in stop_strings for size in range(1, len(stop)) if text.endswith(stop[:size])
    )
    return text[: len(text) - max(begun, default=0)]


def until_stop(ids, text_of, stop_strings):
    """Return ids up to the first with which a stop string comes, their text, and whether one does.

    The text is that before the stop string.
    """
    text, stopped = cut_at_stop(text_of(ids), stop_strings)
    for length in range(1, len(ids)) if stopped else ():
        begun, already = cut_at_stop(text_of(ids[:length]).rstrip(PART), stop_strings)
        if already:
            return ids[:length], begun, True
    return ids, text, stopped
