"""Sets of indexes as text, as in a job's status."""


def indexes(text):
    """Parses a set such as "1,3-5"."""
    found = set()
    for part in filter(None, (text or "").split(",")):
        first, _, last = part.partition("-")
        found.update(range(int(first), int(last or first) + 1))
    return found
