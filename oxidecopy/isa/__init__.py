"""The vocabulary of programs: hardware bounds, element types, swizzles, integer expressions and the op table.

Read `ops` first: each op is declared there once, and the text form, the binary form, the generic check, the verifier and the engines are
derived from it or total over it. Nothing here knows of programs, users or engines.
"""
