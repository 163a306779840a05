"""Sets of indexes as a job's status has them."""


def indexes(text):
    """The set that "1,3-5" stands for."""
    found = set()
    for part in filter(None, (text or "").split(",")):
        first, _, last = part.partition("-")
        found.update(range(int(first), int(last or first) + 1))
    return found
