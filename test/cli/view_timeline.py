# SPDX-License-Identifier: MIT
"""The bytes of api/timeline, as src/view/answers/answer.h describes them."""


class Reader:
    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, size):
        assert self.at + size <= len(self.data)
        self.at += size
        return self.data[self.at - size:self.at]

    def number(self):
        found, shift = 0, 0
        while True:
            byte = self.take(1)[0]
            found |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return found


def decode(data):
    """The answer with the same members as those of other pictures: a run is from, to, kind, detail."""
    reader = Reader(data)
    assert reader.take(3) == b"KT\1"
    ready, read, count = bool(reader.take(1)[0]), reader.number(), reader.number()
    names = [reader.take(reader.number()).decode() for _ in range(reader.number())]
    states = [(reader.take(1)[0], reader.number()) for _ in range(reader.number())]
    rows = []
    for _ in range(reader.number()):
        row, at = {"id": reader.number(), "runs": []}, 0
        for _ in range(reader.number()):
            code = reader.number()
            at += reader.number() if code & 1 else 0
            to = at + (reader.number() if code & 2 else 1)
            assert at < to <= count
            row["runs"] += [at, to, *states[code >> 2]]
            at = to
        rows.append(row)
    assert reader.at == len(data)
    return {"ready": ready, "read": read, "count": count, "names": names, "rows": rows}
