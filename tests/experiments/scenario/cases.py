"""Tables of mistakes as text: a line says what is done, and the indented lines after it what a user reads."""


def cases(table: str) -> list[tuple[str, list[str]]]:
    """What is done with its messages; a line that is indented further goes on with the message before it."""
    found: list[tuple[str, list[str]]] = []
    for line in table.strip("\n").splitlines():
        text = line.replace("⏎", "\n")
        if text.startswith("=> "):
            found[-1] = (f"{found[-1][0]} {text}", [])
        elif not text.startswith("    "):
            found.append((text, []))
        elif text.startswith("        "):
            found[-1][1][-1] += f" {text.lstrip()}"
        else:
            found[-1][1].append(text[4:])
    return found
