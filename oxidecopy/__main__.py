"""`python -m oxidecopy` is the command `oxidecopy`, where its script is not on the path."""

from oxidecopy.cli import main

if __name__ == "__main__":
    main()
