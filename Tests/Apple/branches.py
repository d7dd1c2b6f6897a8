"""Puts a warning into each branch of each condition on a platform, to see which ones are compiled.

Usage: branches.py FOLDER
"""
import os
import re
import sys

ABOUT_PLATFORMS = re.compile(r"canImport\((?:Darwin|Glibc|Musl|os|UIKit|AppKit)\)|\bos\(|targetEnvironment\(")

for folder, _, names in os.walk(sys.argv[1]):
    for name in names:
        path = os.path.join(folder, name)
        if not name.endswith(".swift"):
            continue
        with open(path, encoding="utf-8") as file:
            lines = file.read().split("\n")
        marked, open_conditions = [], []
        for number, line in enumerate(lines, 1):
            marked.append(line)
            match = re.match(r"\s*#(if|elseif|else|endif)\b(.*)", line)
            if not match:
                continue
            word, condition = match.group(1), match.group(2).strip()
            if word == "if":
                open_conditions.append(bool(ABOUT_PLATFORMS.search(condition)))
            if word == "endif":
                open_conditions.pop()
            elif open_conditions[-1]:
                place = f"{os.path.relpath(path, sys.argv[1])}:{number} #{word} {condition}"
                marked.append('#warning("BRANCH {}")'.format(place.replace('"', "'").rstrip()))
        with open(path, "w", encoding="utf-8") as file:
            file.write("\n".join(marked))
