/* Drives librdkafka from 0.9.1 on: what its C interface had then. Options in front of the address: name=value, its own. */

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "rdkafka.h"

#define PATIENCE_S 25
#define TURN_MS 100
#define WITH_TIMESTAMPS (RD_KAFKA_VERSION >= 0x000904ff)

static char problem[512];
static int argument_count;
static char **arguments;

/* Keeps the first problem; returns -1 for the caller to hand on. */
static int failed(const char *what, const char *why) {
    if (!*problem)
        snprintf(problem, sizeof(problem), "%s: %s", what, why);
    return -1;
}

static void tell_text(const char *name, const void *data, size_t size) {
    if (data)
        printf(",\"%s\":\"%.*s\"", name, (int)size, (const char *)data);
    else
        printf(",\"%s\":null", name);
}

static void tell_record(const rd_kafka_message_t *message) {
    printf("{\"partition\":%d,\"offset\":%lld", (int)message->partition, (long long)message->offset);
    tell_text("key", message->key, message->key_len);
    tell_text("value", message->payload, message->len);
#if WITH_TIMESTAMPS
    rd_kafka_timestamp_type_t type;
    long long timestamp = rd_kafka_message_timestamp(message, &type);
    if (type != RD_KAFKA_TIMESTAMP_NOT_AVAILABLE)
        printf(",\"timestamp\":%lld", timestamp);
#endif
    printf("}\n");
}

static rd_kafka_conf_t *settings(void) {
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    char text[256];
    for (int i = 1; i < argument_count - 1; i++) {
        char *equals = strchr(arguments[i], '=');
        *equals = 0;
        rd_kafka_conf_set(conf, arguments[i], equals + 1, text, sizeof(text));
        *equals = '=';
    }
    rd_kafka_conf_set(conf, "client.id", "matrix", text, sizeof(text));
    rd_kafka_conf_set(conf, "metadata.broker.list", arguments[argument_count - 1], text, sizeof(text));
    return conf;
}

static void delivered(rd_kafka_t *client, const rd_kafka_message_t *message, void *opaque) {
    if (message->err)
        failed("delivery", rd_kafka_err2str(message->err));
}

static rd_kafka_t *new_producer(const char *codec) {
    char text[256];
    rd_kafka_conf_t *conf = settings();
    rd_kafka_conf_set(conf, "compression.codec", codec, text, sizeof(text));
    rd_kafka_conf_set(conf, "queue.buffering.max.ms", "5", text, sizeof(text));
    rd_kafka_conf_set_dr_msg_cb(conf, delivered);
    rd_kafka_t *producer = rd_kafka_new(RD_KAFKA_PRODUCER, conf, text, sizeof(text));
    if (!producer)
        failed("producer", text);
    return producer;
}

static rd_kafka_topic_t *topic_of(rd_kafka_t *producer, const char *name) {
    char text[256];
    rd_kafka_topic_conf_t *conf = rd_kafka_topic_conf_new();
    rd_kafka_topic_conf_set(conf, "request.required.acks", "-1", text, sizeof(text));
    rd_kafka_topic_conf_set(conf, "message.timeout.ms", "20000", text, sizeof(text));
    rd_kafka_topic_conf_set_partitioner_cb(conf, rd_kafka_msg_partitioner_consistent);
    return rd_kafka_topic_new(producer, name, conf);
}

/* Asks for the topic until it is there. */
static int create(const char *name, int partitions) {
    rd_kafka_t *producer = new_producer("none");
    if (!producer)
        return -1;
    rd_kafka_topic_t *topic = topic_of(producer, name);
    time_t end = time(NULL) + PATIENCE_S;
    int known = 0;
    while (known != partitions && time(NULL) < end) {
        const struct rd_kafka_metadata *metadata;
        rd_kafka_resp_err_t error = rd_kafka_metadata(producer, 0, topic, &metadata, 10000);
        if (!error) {
            known = metadata->topic_cnt ? metadata->topics[0].partition_cnt : 0;
            rd_kafka_metadata_destroy(metadata);
        }
        rd_kafka_poll(producer, TURN_MS);
    }
    rd_kafka_topic_destroy(topic);
    rd_kafka_destroy(producer);
    return known == partitions ? 0 : failed("create", "the topic was not made");
}

static int send_one(rd_kafka_t *producer, rd_kafka_topic_t *topic, int number, long long timestamp) {
    char key[32], value[160], fill[101];
    memset(fill, 'x', 100);
    fill[100] = 0;
    int key_size = snprintf(key, sizeof(key), "key-%d", number % 50);
    int value_size = snprintf(value, sizeof(value), "value-%d-%s", number, fill);
#if WITH_TIMESTAMPS
    rd_kafka_resp_err_t error = rd_kafka_producev(
        producer, RD_KAFKA_V_TOPIC(rd_kafka_topic_name(topic)), RD_KAFKA_V_KEY(key, key_size),
        RD_KAFKA_V_VALUE(value, value_size), RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY),
        RD_KAFKA_V_TIMESTAMP(timestamp + number), RD_KAFKA_V_END);
    return error ? failed("produce", rd_kafka_err2str(error)) : 0;
#else
    int result = rd_kafka_produce(topic, RD_KAFKA_PARTITION_UA, RD_KAFKA_MSG_F_COPY, value, value_size, key, key_size,
                                  NULL);
    return result ? failed("produce", strerror(errno)) : 0;
#endif
}

static int produce(const char *name, const char *codec, int first, int count, long long timestamp) {
    rd_kafka_t *producer = new_producer(codec);
    if (!producer)
        return -1;
    rd_kafka_topic_t *topic = topic_of(producer, name);
    for (int number = first; number < first + count && !*problem; number++)
        send_one(producer, topic, number, timestamp);
    time_t end = time(NULL) + PATIENCE_S;
    while (rd_kafka_outq_len(producer) > 0 && time(NULL) < end)
        rd_kafka_poll(producer, TURN_MS);
    if (rd_kafka_outq_len(producer) > 0)
        failed("produce", "not all was delivered");
    rd_kafka_topic_destroy(topic);
    rd_kafka_destroy(producer);
    return *problem ? -1 : 0;
}

static rd_kafka_t *new_consumer(const char *group, rd_kafka_conf_t *conf) {
    char text[256];
    rd_kafka_conf_set(conf, "group.id", group, text, sizeof(text));
    rd_kafka_conf_set(conf, "enable.auto.commit", "false", text, sizeof(text));
    rd_kafka_conf_set(conf, "session.timeout.ms", "10000", text, sizeof(text));
    rd_kafka_conf_set(conf, "heartbeat.interval.ms", "500", text, sizeof(text));
    rd_kafka_conf_set(conf, "fetch.wait.max.ms", "100", text, sizeof(text));
    rd_kafka_topic_conf_t *topics = rd_kafka_topic_conf_new();
    rd_kafka_topic_conf_set(topics, "auto.offset.reset", "earliest", text, sizeof(text));
    rd_kafka_conf_set_default_topic_conf(conf, topics);
    rd_kafka_t *consumer = rd_kafka_new(RD_KAFKA_CONSUMER, conf, text, sizeof(text));
    if (!consumer)
        failed("consumer", text);
    else
        rd_kafka_poll_set_consumer(consumer);
    return consumer;
}

/* Tells of the next record, if one comes within a turn; returns how many. */
static int tell_next(rd_kafka_t *consumer) {
    int seen = 0;
    rd_kafka_message_t *message = rd_kafka_consumer_poll(consumer, TURN_MS);
    if (!message)
        return 0;
    if (!message->err) {
        tell_record(message);
        seen = 1;
    } else if (message->err != RD_KAFKA_RESP_ERR__PARTITION_EOF) {
        failed("consume", rd_kafka_message_errstr(message));
    }
    rd_kafka_message_destroy(message);
    return seen;
}

static int consume(const char *topic, int partitions, int count) {
    rd_kafka_t *consumer = new_consumer("none", settings());
    if (!consumer)
        return -1;
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(partitions);
    for (int partition = 0; partition < partitions; partition++)
        rd_kafka_topic_partition_list_add(list, topic, partition)->offset = RD_KAFKA_OFFSET_BEGINNING;
    rd_kafka_assign(consumer, list);
    rd_kafka_topic_partition_list_destroy(list);
    time_t end = time(NULL) + PATIENCE_S;
    int seen = 0;
    while (seen < count && !*problem && time(NULL) < end)
        seen += tell_next(consumer);
    if (seen < count)
        failed("consume", "not all records came");
    rd_kafka_consumer_close(consumer);
    rd_kafka_destroy(consumer);
    return *problem ? -1 : 0;
}

static void commit(rd_kafka_t *consumer) {
    rd_kafka_resp_err_t error = rd_kafka_commit(consumer, NULL, 0);
    if (error && error != RD_KAFKA_RESP_ERR__NO_OFFSET)
        failed("commit", rd_kafka_err2str(error));
}

static void rebalanced(rd_kafka_t *consumer, rd_kafka_resp_err_t error, rd_kafka_topic_partition_list_t *partitions,
                       void *opaque) {
    if (error != RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS) {
        commit(consumer);
        rd_kafka_assign(consumer, NULL);
        return;
    }
    rd_kafka_assign(consumer, partitions);
    printf("{\"assigned\":[");
    for (int i = 0; i < partitions->cnt; i++)
        printf("%s%d", i ? "," : "", (int)partitions->elems[i].partition);
    printf("]}\n");
}

static int is_told_to_leave(void) {
    struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
    return poll(&input, 1, 0) > 0;
}

/* Reads a line byte by byte: what is not read yet must stay visible to poll(). */
static int read_line(char *line, size_t size) {
    size_t length = 0;
    while (length + 1 < size && read(STDIN_FILENO, line + length, 1) == 1) {
        if (line[length] == '\n') {
            line[length] = 0;
            return 1;
        }
        length++;
    }
    return 0;
}

static int join(const char *topic, const char *group) {
    char line[64];
    rd_kafka_conf_t *conf = settings();
    rd_kafka_conf_set_rebalance_cb(conf, rebalanced);
    rd_kafka_t *consumer = new_consumer(group, conf);
    if (!consumer)
        return -1;
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);
    rd_kafka_topic_partition_list_add(list, topic, -1);
    rd_kafka_subscribe(consumer, list);
    rd_kafka_topic_partition_list_destroy(list);
    while (!is_told_to_leave() && !*problem)
        tell_next(consumer);
    if (!*problem)
        read_line(line, sizeof(line));
    commit(consumer);
    rd_kafka_consumer_close(consumer);
    rd_kafka_destroy(consumer);
    return *problem ? -1 : 0;
}

static int obey(char *line) {
    char *words[8] = {0};
    int count = 0;
    for (char *word = strtok(line, " "); word && count < 8; word = strtok(NULL, " "))
        words[count++] = word;
    if (!strcmp(words[0], "create"))
        return create(words[1], atoi(words[2]));
    if (!strcmp(words[0], "produce"))
        return produce(words[2], words[3], atoi(words[4]), atoi(words[5]), atoll(words[6]));
    if (!strcmp(words[0], "consume"))
        return consume(words[2], atoi(words[3]), atoi(words[4]));
    return join(words[1], words[2]);
}

int main(int count, char **values) {
    char line[1024];
    argument_count = count;
    arguments = values;
    setvbuf(stdout, NULL, _IOLBF, 0);
    while (read_line(line, sizeof(line))) {
        *problem = 0;
        if (obey(line))
            printf("{\"error\":\"%s\"}\n", problem);
        else
            printf("{\"done\":true}\n");
    }
    return 0;
}
