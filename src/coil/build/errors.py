"""What a builder raises when its inputs cannot make a valid object."""


class BuildError(Exception):
    """An input that no object can be made from: says where it is and what is wrong with it.

    `where` is the path inside the custom resource or the name of the missing object.
    """

    def __init__(self, where: str, what: str) -> None:
        super().__init__(f"{where}: {what}")
        self.where = where
        self.what = what
