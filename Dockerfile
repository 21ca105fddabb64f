# detap as an image, built from the checkout:
#     docker build -t detap .
#     docker run --rm -v "$PWD:/data:ro" detap eval --gt instances.json --dt results.json
FROM python:3.13-slim AS build
# A compiler of whatever version the image's system has; it stays behind in this stage.
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install --yes --no-install-recommends gcc libc6-dev \
    && rm -rf /var/lib/apt/lists/*
WORKDIR /source
COPY . .
RUN pip wheel --no-cache-dir --wheel-dir /wheels '.[report]'

FROM python:3.13-slim
# The version is that of the one wheel there is.
# hadolint ignore=DL3013
RUN --mount=type=bind,from=build,source=/wheels,target=/wheels \
    pip install --no-cache-dir --no-index --find-links=/wheels 'detap[report]'
RUN useradd --uid 10001 --no-create-home --shell /usr/sbin/nologin detap
USER 10001
WORKDIR /data
ENTRYPOINT ["detap"]
CMD ["--help"]
