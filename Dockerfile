# syntax=docker/dockerfile:1
# One image for every role; compose.yaml says which command each runs.
FROM python:3.11-slim-bookworm AS build
RUN python -m venv /opt/pipeline
ENV PATH=/opt/pipeline/bin:$PATH
WORKDIR /src
# The pinned packages first: they change less often than the code, and this layer is the slow one.
COPY requirements.txt ./
RUN --mount=type=cache,target=/root/.cache/pip pip install --no-deps -r requirements.txt
COPY pyproject.toml README.md ./
COPY pipeline pipeline
COPY rabbitmq rabbitmq
RUN pip install --no-deps .

FROM python:3.11-slim-bookworm
# procps gives health checks something to look with.
RUN apt-get update \
    && apt-get install -y --no-install-recommends procps \
    && rm -rf /var/lib/apt/lists/*
RUN useradd --system --uid 10001 --home-dir /var/lib/pipeline --create-home --shell /usr/sbin/nologin pipeline
COPY --from=build /opt/pipeline /opt/pipeline
# The application: its workflows, its tables, and the sandbox that stands in for the outside world.
COPY actors /opt/workflows/actors
COPY db /opt/workflows/db
COPY sandbox /opt/workflows/sandbox

# Secrets are files; the pipeline's settings come from the environment. This joins them, and keeps passwords out of
# the image, of `docker inspect` and of compose.yaml.
COPY --chmod=755 <<'EOF' /usr/local/bin/with-secrets
#!/bin/sh
set -eu
secret() { cat "/run/secrets/$1"; }
export DATABASE_URL="postgresql://pipeline:$(secret postgres_password)@postgres:5432/pipeline"
export RABBITMQ_URL="amqp://pipeline:$(secret pipeline_password)@rabbitmq:5672/pipeline"
export RABBITMQ_MANAGEMENT_URL="http://operator:$(secret operator_password)@rabbitmq:15672"
exec "$@"
EOF

ENV PATH=/opt/pipeline/bin:$PATH PYTHONPATH=/opt/workflows PIPELINE_WORKFLOWS=actors.workflows PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 PIPELINE_LOG_FORMAT=json \
    CACHE_FOLDER=/var/lib/pipeline/cache PIPELINE_DOCUMENT_FOLDER=/var/lib/pipeline/documents
USER pipeline
WORKDIR /var/lib/pipeline
ENTRYPOINT ["with-secrets"]
CMD ["dramatiq", "pipeline.actors", "--processes", "4"]
