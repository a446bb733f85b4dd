# SPDX-License-Identifier: BSD-2-Clause
"""Prints a script as the lines of a C program."""
PREFIXES = {"b": "the other host: ", "t": "a thread: ", "!": "signals arrive: ",
            "x": "no descriptor is free: "}


# The call of each word; {1}, {2} and so on are the words after it.
CALLS = {
    "create": "rdma_create_id({2}, &{1}, NULL, {3});", "destroy": "rdma_destroy_id({1});",
    "bind": "rdma_bind_addr({1}, {2}({3}));", "listen": "rdma_listen({1}, {2});",
    "addr": "rdma_resolve_addr({1}, {2}, {3}({4}), 300);", "route": "rdma_resolve_route({1}, 300);",
    "devices": "rdma_get_devices(&n);",
    "destroyep": "rdma_destroy_ep({1});", "qp": "rdma_create_qp({1}, NULL, &{2}); /* or {3} */",
    "delqp": "rdma_destroy_qp({1});",
    "srq": "rdma_create_srq({1}, NULL, &srq);", "connect": "rdma_connect({1}, {2});",
    "accept": "rdma_accept({1}, {2});", "reject": "rdma_reject({1}, data, {2});",
    "establish": "rdma_establish({1});", "disconnect": "rdma_disconnect({1});",
    "notify": "rdma_notify({1}, {2});", "join": "rdma_join_multicast({1}, {2}(0), NULL);",
    "leave": "rdma_leave_multicast({1}, {2}(0));",
    "option": "set_option({1}, {2}, {3});", "migrate": "rdma_migrate_id({1}, {2});",
    "attr": "rdma_init_qp_attr({1}, &attr, &mask); /* to state {2} */",
    "ece": "rdma_set_local_ece({1}, &ece); /* or get: {2} */",
    "recv": "rdma_post_recvv({1}, NULL, NULL, 0);",
    "send": "rdma_post_sendv({1}, NULL, NULL, 0, 0);",
    "request": "rdma_get_request({1}, &i5);", "events": "take_and_acknowledge_events({1});",
    "wait": "wait_for_events({1});", "hold": "rdma_get_cm_event({1}, &event);",
    "info": "rdma_getaddrinfo({1}, {2}, &hints, &info); /* {3}, flags {4} */",
    "ep": "rdma_create_ep(&{1}, info, NULL, &{6}); /* of {2} {3} {4}, flags {5} */",
}
WORDS = {"sync": "NULL", "-": "NULL", "tcp": "RDMA_PS_TCP", "udp": "RDMA_PS_UDP",
         "ib": "RDMA_PS_IB", "ipoib": "RDMA_PS_IPOIB", "est": "IBV_EVENT_COMM_EST",
         "mig": "IBV_EVENT_PATH_MIG"}


def call_of(line):
    word, *rest = line.split(" ")
    if word in PREFIXES:
        return f"/* {PREFIXES[word]}*/ {call_of(' '.join(rest))}"
    if word.startswith("s:"):
        return f"r{word[2:]}({', '.join(rest)});"
    words = [word, *(WORDS.get(text, text) for text in rest), *[""] * 8]
    return CALLS.get(word, "/* {0} {1} {2} */").format(*words)


def text_of(lines):
    return "\n".join("\t" + call_of(line) for line in lines)
