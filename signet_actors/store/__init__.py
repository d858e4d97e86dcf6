"""DOOR: the only room that imports apsw and sqlite_vec."""
