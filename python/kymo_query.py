# SPDX-License-Identifier: MIT
"""SQL over traces: the tables of kymo query (docs/sql.md), from Python.

    import kymo_query

    with kymo_query.open("my-trace") as traces:
        for row in traces.query("SELECT name, duration FROM syscall WHERE tid = :tid", tid=4711):
            print(row.name, row.duration)

A row is a named tuple; columns whose names are no names in Python are _0, _1, ... Values are int, float, str, bytes or None. Rows come one by
one, while the statement reads the traces. Statements can be prepared once and run often:

    statement = traces.prepare("SELECT count(*) FROM event WHERE name = :name")
    (n,) = next(statement.run(name="sched_switch"))

The module loads libkymo-query.so.0 by ctypes; the environment variable KYMO_QUERY_LIBRARY names another file. Memory: the module copies all
values. Statements are freed with their traces at the latest. Threads: one at a time for the same traces.
"""

import collections
import ctypes
import os

__all__ = ["Error", "Statement", "Traces", "open"]

_NULL, _INTEGER, _REAL, _TEXT, _BLOB = range(5)


class _Error(ctypes.Structure):
    """struct kymo_error."""

    _fields_ = [("code", ctypes.c_int), ("line", ctypes.c_uint32), ("column", ctypes.c_uint32), ("offset", ctypes.c_uint64),
                ("packet", ctypes.c_uint64), ("event", ctypes.c_uint64), ("path", ctypes.c_char * 1024),
                ("message", ctypes.c_char * 512), ("hint", ctypes.c_char * 512)]


class Error(Exception):
    """What failed: code (of kymo/error.h), message, path, line and column."""

    def __init__(self, err):
        self.code, self.line, self.column = err.code, err.line, err.column
        self.path, self.hint = (text.decode("utf-8", "replace") for text in (err.path, err.hint))
        self.message = err.message.decode("utf-8", "replace")
        super().__init__(f"{self.path}: {self.message}" if self.path else self.message)


def _load():
    library = ctypes.CDLL(os.environ.get("KYMO_QUERY_LIBRARY") or "libkymo-query.so.0")
    pointer, err, size, text = ctypes.c_void_p, ctypes.POINTER(_Error), ctypes.c_size_t, ctypes.c_char_p
    out = ctypes.POINTER(pointer)
    for name, result, *arguments in (
            ("kymo_query_open", ctypes.c_int, ctypes.POINTER(text), size, out, err),
            ("kymo_query_close", None, pointer),
            ("kymo_query_prepare", ctypes.c_int, pointer, text, out, err),
            ("kymo_statement_free", None, pointer),
            ("kymo_statement_reset", None, pointer),
            ("kymo_statement_bind_int64", ctypes.c_int, pointer, text, ctypes.c_int64, err),
            ("kymo_statement_bind_double", ctypes.c_int, pointer, text, ctypes.c_double, err),
            ("kymo_statement_bind_text", ctypes.c_int, pointer, text, text, err),
            ("kymo_statement_bind_null", ctypes.c_int, pointer, text, err),
            ("kymo_statement_step", ctypes.c_int, pointer, err),
            ("kymo_statement_n_columns", size, pointer),
            ("kymo_statement_column_name", text, pointer, size),
            ("kymo_statement_type", ctypes.c_int, pointer, size),
            ("kymo_statement_int64", ctypes.c_int64, pointer, size),
            ("kymo_statement_double", ctypes.c_double, pointer, size),
            ("kymo_statement_text", pointer, pointer, size, ctypes.POINTER(size))):
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return library


_LIBRARY = None


def _library():
    global _LIBRARY  # pylint: disable=global-statement
    if _LIBRARY is None:
        _LIBRARY = _load()
    return _LIBRARY


def _check(status, err):
    if status < 0:
        raise Error(err)
    return status


class Statement:
    """A prepared statement. Only one run of it goes on at a time: a new run ends the one before."""

    def __init__(self, traces, sql):
        self._traces, self._own = traces, ctypes.c_void_p()
        err = _Error()
        _check(_library().kymo_query_prepare(traces._handle(), sql.encode(), ctypes.byref(self._own), ctypes.byref(err)), err)
        names = [_library().kymo_statement_column_name(self._own, i).decode("utf-8", "replace")
                 for i in range(_library().kymo_statement_n_columns(self._own))]
        self.columns = names
        self._row = collections.namedtuple("Row", names, rename=True)

    def _bind(self, name, value):
        library, err = _library(), _Error()
        if value is None:
            status = library.kymo_statement_bind_null(self._own, name.encode(), ctypes.byref(err))
        elif isinstance(value, float):
            status = library.kymo_statement_bind_double(self._own, name.encode(), value, ctypes.byref(err))
        elif isinstance(value, int):
            if not -2**63 <= value < 2**63:
                raise OverflowError(f"parameter {name}: a number of 64 bits with a sign is expected")
            status = library.kymo_statement_bind_int64(self._own, name.encode(), value, ctypes.byref(err))
        else:
            status = library.kymo_statement_bind_text(self._own, name.encode(), str(value).encode(), ctypes.byref(err))
        _check(status, err)

    def _value(self, i):
        library, length = _library(), ctypes.c_size_t()
        kind = library.kymo_statement_type(self._own, i)
        if kind == _INTEGER:
            return library.kymo_statement_int64(self._own, i)
        if kind == _REAL:
            return library.kymo_statement_double(self._own, i)
        if kind == _NULL:
            return None
        data = ctypes.string_at(library.kymo_statement_text(self._own, i, ctypes.byref(length)), length.value)
        return data if kind == _BLOB else data.decode("utf-8", "surrogateescape")

    def run(self, **parameters):
        """The rows with these values of the parameters."""
        self._traces._handle()
        _library().kymo_statement_reset(self._own)
        for name, value in parameters.items():
            self._bind(name, value)
        return self._rows()

    def _rows(self):
        err = _Error()
        while True:
            self._traces._handle()
            if not _check(_library().kymo_statement_step(self._own, ctypes.byref(err)), err):
                return
            yield self._row(*(self._value(i) for i in range(len(self.columns))))

    def _free(self):
        _library().kymo_statement_free(self._own)
        self._own = None


class Traces:
    """Open traces. Close them, or use them in a with statement."""

    def __init__(self, paths):
        own, err, encoded = ctypes.c_void_p(), _Error(), [os.fsencode(path) for path in paths]
        array = (ctypes.c_char_p * len(encoded))(*encoded)
        _check(_library().kymo_query_open(array, len(encoded), ctypes.byref(own), ctypes.byref(err)), err)
        self._own, self._statements = own, []

    def _handle(self):
        if self._own is None:
            raise ValueError("the traces are closed")
        return self._own

    def prepare(self, sql):
        """A statement, to be run once or often."""
        statement = Statement(self, sql)
        self._statements.append(statement)
        return statement

    def query(self, sql, **parameters):
        """The rows of a statement."""
        return self.prepare(sql).run(**parameters)

    def close(self):
        """Frees the traces and their statements."""
        if self._own is None:
            return
        for statement in self._statements:
            statement._free()
        self._statements = []
        _library().kymo_query_close(self._own)
        self._own = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def __del__(self):
        if getattr(self, "_own", None) is not None:
            self.close()


def open(*paths):  # pylint: disable=redefined-builtin
    """Opens the traces at or below these paths."""
    return Traces(paths)
