"""``python -m compat_tests.spark.by_token``: a Spark driver that obtains a delegation token and has no other login.

Spark's HadoopDelegationTokenManager runs the providers of tokens on a cluster alone, and only with Kerberos credentials. This
driver runs Spark's provider for Kafka itself, which obtains the tokens of ``spark.kafka.clusters.*``. Standard input is a JSON object:
``conf`` (settings of the session), ``options`` (Spark's options for the cluster), ``topic`` and ``folder``. Prints another one.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from compat_tests.spark.driver import to_parquet
from spark_integration.archive.pipeline import archive
from spark_integration.queries.settings import StreamOptions
from spark_integration.session import start_session

ROWS = 100


def obtain_tokens(session: Any) -> list[str]:
    """Let Spark's provider obtain the tokens, and give them to the current user; return the services that they are for."""
    jvm = session._jvm
    credentials = jvm.org.apache.hadoop.security.Credentials()
    provider = jvm.org.apache.spark.kafka010.KafkaDelegationTokenProvider()
    provider.obtainDelegationTokens(session._jsc.hadoopConfiguration(), session._jsc.getConf(), credentials)
    jvm.org.apache.hadoop.security.UserGroupInformation.getCurrentUser().addCredentials(credentials)
    return [str(token.getService()) for token in credentials.getAllTokens().toArray()]


def main(conf: dict[str, str], options: dict[str, str], topic: str, folder: str) -> None:
    """Write the topic, read it in a batch, by a stream and by a pipeline, and print the numbers of records."""
    session: Any = start_session("by-token", master="local[2]", memory="512m", shuffle_partitions=2, configs=conf)
    services = obtain_tokens(session)
    rows = session.range(ROWS).selectExpr("string(id) as value")
    rows.write.format("kafka").options(**options, topic=topic).save()
    source = {**options, "subscribe": topic, "startingOffsets": "earliest"}
    stream = session.readStream.format("kafka").options(**source).load()
    to_parquet(stream, Path(folder)).trigger(availableNow=True).start().awaitTermination()
    settings = StreamOptions(f"{folder}/checkpoint", commit_group=topic)
    numbers = {
        "batch": session.read.format("kafka").options(**source).load().count(),
        "stream": session.read.parquet(f"{folder}/parquet").count(),
        "archive": archive(session, source, f"{folder}/archive", settings).records,
    }
    json.dump({"services": services, **numbers}, sys.stdout)
    session.stop()


if __name__ == "__main__":
    main(**json.load(sys.stdin))
