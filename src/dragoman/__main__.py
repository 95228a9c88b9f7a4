"""`python -m dragoman` is `dragoman`."""

from dragoman.cli.entry import main

if __name__ == "__main__":
    main()
