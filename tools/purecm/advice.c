/* SPDX-License-Identifier: BSD-2-Clause */
/* The table of advice.h. The first matching row applies, so specific rows precede general ones. */
#include "tools/purecm/advice.h"

#define ASKED	    .outcome = FLOW_ASKED, .reason = ADVICE_ANY
#define GIVEN_UP    .outcome = FLOW_GIVEN_UP, .reason = ADVICE_ANY
#define ANSWERED    .outcome = FLOW_ANSWERED, .reason = ADVICE_ANY
#define CLOSING	    .outcome = FLOW_CLOSING, .reason = ADVICE_ANY
#define REJECTED(r) .outcome = FLOW_REJECTED, .reason = (r)
#define SIDR(r)	    .outcome = FLOW_REJECTED, .reason = (r), .is_sidr = true

#define SILENT_HOST                                                                                \
	.cause = "No packet from {host} was seen: it is down, packets to it or from it are lost, " \
		 "its port has no GID of this version of RoCE, or no connection manager runs "     \
		 "there.",                                                                         \
	.remedy = "Try `ping {host}`; on both hosts allow UDP port 4791 in both directions "       \
		  "(`nft list ruleset`); on {host} run `purecm doctor`. A host without the "       \
		  "kernel's rdma_cm answers only if cmportd runs."

#define SILENT_IB                                                                               \
	.cause = "No packet from {host} was seen: it is down, its port is not Active, the way " \
		 "there or the partition (P_Key) has changed, or no connection manager runs "   \
		 "there.",                                                                      \
	.remedy = "On both hosts see `ibstat`: State has to be Active; try the way with "       \
		  "`ibping` or `ibtracert`; on {host} run `purecm doctor`. A host without the " \
		  "kernel's rdma_cm answers only if cmportd runs."

#define SILENT_V1                                                                                  \
	.cause = "The request went as RoCE v1. A port without GIDs of RoCE v1, as Soft-RoCE "      \
		 "has, does not see it; else {host} is down or in another VLAN.",                  \
	.remedy = "Compare the GID types of both ends, `grep . "                                   \
		  "/sys/class/infiniband/*/ports/*/gid_attrs/types/*`, and let both use RoCE v2: " \
		  "the kernel's connection manager takes that of "                                 \
		  "/sys/kernel/config/rdma_cm/DEVICE/ports/PORT/default_roce_mode."

#define SILENT_PROGRAM                                                                             \
	.cause = "{host} has sent other messages, so it is up. Packets are lost; or it drops the " \
		 "request because the listener's backlog is full, because an older connection of " \
		 "this CA has comm id {comm_id}, or because it has no route back to the sender's " \
		 "GID.",                                                                           \
	.remedy = "Look for packet loss between the two (`ethtool -S`). "                          \
		  "Make the server take its events faster or listen with a larger backlog; after " \
		  "a crash of the client wait for the server's timeouts; on {host} check route "   \
		  "and neighbour of the sender with `purecm doctor`."

#define MUTE_PROGRAM                                                                             \
	.cause = "{host} has the request. Its program has neither accepted nor rejected it, or " \
		 "has not even taken the event; or the listener's backlog is full.",             \
	.remedy = "See what the server does between RDMA_CM_EVENT_CONNECT_REQUEST and "          \
		  "rdma_accept(); let it listen with a larger backlog."

/* clang-format off */
static const struct advice table[] = {
	/* --- no response ---------------------------------------------- */
	{ ASKED, .fits = { context_got_mra },
	  .what = "{active} sent {requests}; {passive} asked it to wait up to {mra_wait} (MRA) and then did not answer.",
	  .cause = "The server's program has the request and has neither accepted nor rejected it, or its answer was lost.",
	  .remedy = "See what the server does between RDMA_CM_EVENT_CONNECT_REQUEST and rdma_accept()." },
	{ ASKED, .fits = { context_has_just_begun },
	  .what = "{active} sent {requests} and had no answer when the trace ended, {watched} later.",
	  .cause = "The trace ends before an answer is due; it need not be a failure.",
	  .remedy = "Capture for longer." },
	{ ASKED, .is_sidr = true, .fits = { context_peer_speaks },
	  .what = "{active} asked for {service} ({requests}); {passive} never answered.",
	  .cause = "{host} answers others, so it is up. The Linux kernel drops a SIDR_REQ while another one with the same request id is pending, even one of another host.",
	  .remedy = "Try again. If it fails again, check that the server takes its events." },
	{ ASKED, .fits = { context_is_received_here },
	  .what = "{active} sent {requests}; {passive} never answered.", MUTE_PROGRAM },
	{ ASKED, .fits = { context_peer_speaks },
	  .what = "{active} sent {requests}; {passive} never answered.", SILENT_PROGRAM },
	{ ASKED, .fits = { context_is_infiniband },
	  .what = "{active} sent {requests}; {passive} never answered.", SILENT_IB },
	{ ASKED, .fits = { context_is_roce_v1 },
	  .what = "{active} sent {requests}; {passive} never answered.", SILENT_V1 },
	{ ASKED,
	  .what = "{active} sent {requests}; {passive} never answered.", SILENT_HOST },
	{ ASKED, .is_sidr = true, .fits = { context_is_infiniband },
	  .what = "{active} asked for {service} ({requests}); {passive} never answered.", SILENT_IB },
	{ ASKED, .is_sidr = true, .fits = { context_is_roce_v1 },
	  .what = "{active} asked for {service} ({requests}); {passive} never answered.", SILENT_V1 },
	{ ASKED, .is_sidr = true,
	  .what = "{active} asked for {service} ({requests}); {passive} never answered.", SILENT_HOST },

	{ GIVEN_UP, .fits = { context_got_mra },
	  .what = "{active} withdrew its request (REJ {reason}) after {requests}, although {passive} had asked it to wait up to {mra_wait} (MRA).",
	  .cause = "The server's program has the request and was slow to accept it, or its answer was lost; the client's program ended or stopped waiting first.",
	  .remedy = "See what the server does between RDMA_CM_EVENT_CONNECT_REQUEST and rdma_accept(), or let the client wait longer." },
	{ GIVEN_UP, .fits = { context_waited_briefly },
	  .what = "{active} withdrew its request (REJ {reason}) after {waited}, before it was due to be sent again.",
	  .cause = "It is too early to tell: the server's program may be slow to accept, a packet may have been lost, or {host} is down.",
	  .remedy = "Let the client wait for some seconds, and see what the server does between RDMA_CM_EVENT_CONNECT_REQUEST and rdma_accept(); `purecm ping` shows whether {host} answers." },
	{ GIVEN_UP, .fits = { context_answer_was_late },
	  .what = "{active} withdrew its request (REJ {reason}) after {requests}. {passive} answered {late} after that.",
	  .cause = "{host} hung, was overloaded or could not be reached for some time; the client's program ended or stopped waiting first.",
	  .remedy = "Let the client wait longer, or find out what delayed {host}." },
	{ GIVEN_UP, .fits = { context_is_received_here },
	  .what = "{active} withdrew its request (REJ {reason}) after {requests} that {passive} never answered.", MUTE_PROGRAM },
	{ GIVEN_UP, .fits = { context_peer_speaks },
	  .what = "{active} withdrew its request (REJ {reason}) after {requests} that {passive} never answered.", SILENT_PROGRAM },
	{ GIVEN_UP, .fits = { context_is_infiniband },
	  .what = "{active} withdrew its request (REJ {reason}) after {requests} that {passive} never answered.", SILENT_IB },
	{ GIVEN_UP, .fits = { context_is_roce_v1 },
	  .what = "{active} withdrew its request (REJ {reason}) after {requests} that {passive} never answered.", SILENT_V1 },
	{ GIVEN_UP,
	  .what = "{active} withdrew its request (REJ {reason}) after {requests} that {passive} never answered.", SILENT_HOST },

	/* --- response not confirmed ------------------------------------- */
	{ ANSWERED, .fits = { context_got_mra },
	  .what = "{passive} accepted ({replies}); {active} asked it to wait up to {mra_wait} (MRA) and never confirmed with RTU.",
	  .cause = "The client's program has not taken the event for the answer, or its RTU was lost.",
	  .remedy = "Make the client take its events: rdma_get_cm_event(), then rdma_accept() or rdma_establish() if it has no queue pair of rdma_create_qp()." },
	{ ANSWERED, .fits = { context_has_just_begun },
	  .what = "{passive} accepted ({replies}), and then the trace ends.",
	  .cause = "The trace ends before a confirmation is due; it need not be a failure.",
	  .remedy = "Capture for longer." },
	{ ANSWERED, .fits = { context_is_infiniband },
	  .what = "{passive} accepted ({replies}); {active} never confirmed with RTU.",
	  .cause = "The answer does not reach {active}, or its program has ended or does not take its events.",
	  .remedy = "Check that the client runs and calls rdma_get_cm_event(); try the way back from {passive} with `ibtracert`." },
	{ ANSWERED,
	  .what = "{passive} accepted ({replies}); {active} never confirmed with RTU.",
	  .cause = "The answer does not reach {active}, or its program has ended or does not take its events.",
	  .remedy = "On {active} allow incoming UDP to port 4791 (`nft list ruleset`); check that the client runs and calls rdma_get_cm_event()." },

	/* --- rejected ---------------------------------------------------- */
	{ REJECTED(1), .what = "{rejecter} has no queue pair for it (REJ {reason}).",
	  .cause = "The server could not create one: a limit of the device, of locked memory or of descriptors. IPoIB in connected mode also gives this reason.",
	  .remedy = "On {rejecter} see `rdma resource`, `ulimit -l -n` and the log." },
	{ REJECTED(2), .what = "{rejecter} has no end-to-end context (REJ {reason}).",
	  .cause = "The request asks for reliable datagrams, which hardly any device supports.",
	  .remedy = "Ask for RC: rdma_create_id() with RDMA_PS_TCP." },
	{ REJECTED(3), .what = "{rejecter} lacks resources (REJ {reason}).",
	  .cause = "It ran out of memory or queue pairs, or reached a limit of the server's program.",
	  .remedy = "Try later; on {rejecter} see `rdma resource` and the program's limits." },
	{ REJECTED(4), .what = "{rejecter} gave up waiting (REJ {reason}).",
	  .cause = "The message that it waited for was lost, or the other end was slow. {requests} and {replies} were seen.",
	  .remedy = "Look for packet loss between the two (`ethtool -S`, pause and ECN settings) and for a program that does not take its events." },
	{ REJECTED(5), .what = "{rejecter} does not support the request (REJ {reason}).",
	  .cause = "The other end has another version or kind of connection manager.",
	  .remedy = "Compare the request (`purecm trace -v`) with what the server expects." },
	{ REJECTED(6), .what = "{rejecter} does not know the comm ids (REJ {reason}).",
	  .cause = "It no longer has the connection: it restarted, or it had given up.",
	  .remedy = "Connect again." },
	{ REJECTED(7), .what = "{rejecter} has another connection with these comm ids (REJ {reason}).",
	  .cause = "Comm ids were used twice.",
	  .remedy = "Connect again; if this recurs, two connection managers have the same CA GUID ({guid})." },
	{ REJECTED(8), .what = "{rejecter} answers that nobody listens at {service} (REJ {reason}).",
	  .cause = "The server does not run, or it listens on another port, in another port space or only on another device. Its connection manager works.",
	  .remedy = "Start the server; compare ports: on {rejecter} `purecm stat` shows who listens, on a stock host `rdma resource show cm_id`." },
	{ REJECTED(9), .what = "{rejecter} listens for another kind of queue pair (REJ {reason}).",
	  .cause = "One end uses RC and the other UC or UD.",
	  .remedy = "Use the same port space and queue pair type at both ends." },
	{ REJECTED(10), .fits = { context_has_older },
	  .what = "{rejecter} still has an older connection, {older}, with queue pair {qpn} of CA {guid} (REJ {reason}).",
	  .cause = "{older} ({older_end}) used the same queue pair number; it ended without a disconnect that both ends saw, for example by a crash.",
	  .remedy = "Try again: {rejecter} now ends the older one with a DREQ. Programs should call rdma_disconnect() before they destroy the queue pair." },
	{ REJECTED(10),
	  .what = "{rejecter} still has an older connection with queue pair {qpn} of CA {guid} (REJ {reason}).",
	  .cause = "An earlier program used the same queue pair number and its disconnect did not arrive, or two hosts have the same CA GUID.",
	  .remedy = "Try again: {rejecter} now ends the older one with a DREQ. If this recurs, compare the node GUIDs of both hosts (`ibv_devinfo`)." },
	{ REJECTED(12), .fits = { context_has_other_pkey },
	  .what = "{rejecter} refuses the path: {named_gids}, pkey {pkey} (REJ {reason}). It offers {ari}.",
	  .cause = "The port there is not a member of partition {pkey}, or does not have that GID.",
	  .remedy = "Check the port's table: `grep . /sys/class/infiniband/*/ports/*/pkeys/*`; then the partition's configuration in the subnet manager." },
	{ REJECTED(12), .fits = { context_has_foreign_gid },
	  .what = "{rejecter} refuses the path {named_gids}, in a packet from {packet_gids} (REJ {reason}). It offers {ari}.",
	  .cause = "The request was not sent from the GID that it names: the sender's GID index is wrong.",
	  .remedy = "On {active} choose the GID that matches the source address: `rdma link`, `ibv_devinfo -v`." },
	{ REJECTED(12),
	  .what = "{rejecter} refuses the path {named_gids} (REJ {reason}). It offers {ari}.",
	  .cause = "The interface that received the packet does not have that GID, or there is no route or neighbour back to the sender: another VLAN, another RoCE version, another partition (P_Key), an address that moved.",
	  .remedy = "On {rejecter} run `purecm doctor` with the address of {active}; compare the GID tables (`ibv_devinfo -v`) and VLANs." },
	{ REJECTED(13), .what = "{rejecter} does not have the LID of the path (REJ {reason}).",
	  .cause = "The subnet manager has assigned other LIDs since the path was resolved.",
	  .remedy = "Resolve the route again and reconnect." },
	{ REJECTED(14), .what = "{rejecter} refuses the service level of the path (REJ {reason}).",
	  .cause = "Quality of service is set up differently at both ends.",
	  .remedy = "Compare RDMA_OPTION_ID_TOS and the mapping of priorities at both ends." },
	{ REJECTED(15), .what = "{rejecter} refuses the traffic class of the path (REJ {reason}).",
	  .cause = "Quality of service is set up differently at both ends.",
	  .remedy = "Compare RDMA_OPTION_ID_TOS at both ends." },
	{ REJECTED(16), .what = "{rejecter} refuses the hop limit of the path (REJ {reason}).",
	  .cause = "A routed path has the hop limit of a local one, or the reverse.",
	  .remedy = "Resolve the route again; check the route's hop limit (`ip route get`)." },
	{ REJECTED(17), .what = "{rejecter} refuses the packet rate of the path (REJ {reason}).",
	  .cause = "Its link is slower than in the path record.",
	  .remedy = "See `rdma link` and the subnet manager's path records." },
	{ REJECTED(18), .what = "{rejecter} refuses the GID of the alternate path (REJ {reason}). It names {ari}.",
	  .cause = "The second port does not exist or cannot be reached.",
	  .remedy = "Connect without an alternate path." },
	{ REJECTED(24), .what = "{rejecter} redirects the request to another port and connection manager (REJ {reason}): {ari}.",
	  .cause = "Redirection; Linux never follows one.",
	  .remedy = "Connect to the address that it names." },
	{ REJECTED(25), .what = "{rejecter} redirects the request to another port (REJ {reason}): {ari}.",
	  .cause = "Redirection; Linux never follows one.",
	  .remedy = "Connect to the address that it names." },
	{ REJECTED(26), .what = "{rejecter} refuses a path MTU of {mtu} (REJ {reason}). It takes {ari_mtu}.",
	  .cause = "The interfaces at both ends, or a switch between them, have different MTUs.",
	  .remedy = "Set the same MTU at both ends (`ip link set mtu`); RoCE needs 96 bytes more than the path MTU." },
	{ REJECTED(27), .what = "{rejecter} does not support so many outstanding RDMA READs (REJ {reason}).",
	  .cause = "initiator_depth or responder_resources is larger than the other end's device allows.",
	  .remedy = "Lower them in rdma_conn_param; `ibv_devinfo -v` shows max_qp_rd_atom." },
	{ REJECTED(28), .fits = { context_has_no_ip_header },
	  .what = "{rejecter} refuses the request (REJ {reason}); its private data does not begin with an IP CM header: {req_data}.",
	  .cause = "The private data of a request for {service} must begin with 36 bytes of IP addresses. The sender uses the IB CM without the RDMA IP CM service, or AF_IB towards a listener of AF_INET.",
	  .remedy = "Connect with librdmacm and IP addresses, or let the server listen with AF_IB." },
	{ REJECTED(28), .fits = { context_has_other_address },
	  .what = "{rejecter} refuses the request (REJ {reason}): it is for {header_address}, but was sent to the GID {host}.",
	  .cause = "The GID does not belong to the address in the IP CM header: a wrong GID, or NAT, which RDMA does not support.",
	  .remedy = "Connect to the server's own address, without NAT." },
	{ REJECTED(28), .fits = { context_was_rejected_by_active, context_was_established },
	  .what = "{rejecter} ended the connection with a REJ instead of a DREQ (REJ {reason}).",
	  .cause = "It destroyed the connection before it learned that it was established.",
	  .remedy = "Check the program at {rejecter}." },
	{ REJECTED(28), .fits = { context_was_rejected_by_active },
	  .what = "{rejecter} rejected the REP (REJ {reason}); private data: {rej_data}.",
	  .cause = "Its program called rdma_reject() or destroyed the id, or its queue pair could not be moved to RTR or RTS with the values of the REP.",
	  .remedy = "Check the program at {rejecter}; with purecm, PURECM_LOG=warn reports queue pairs that cannot be moved." },
	{ REJECTED(28), .fits = { context_has_private_data },
	  .what = "The program at {rejecter} refuses the request (REJ {reason}); private data: {rej_data}.",
	  .cause = "The program decided so; the private data has its own format.",
	  .remedy = "See the server's log, and its protocol for the private data." },
	{ REJECTED(28),
	  .what = "{rejecter} refuses the request (REJ {reason}) without private data.",
	  .cause = "Its program called rdma_reject(), or the listener on that port does not match: it is bound to another address, the packet arrived on another interface than the address is on, or the queue pair types differ.",
	  .remedy = "See the server's log and the address that it is bound to; on {rejecter} run `purecm doctor` with the address of {active}." },
	{ REJECTED(29), .what = "{rejecter} refuses the RNR retry count (REJ {reason}).",
	  .cause = "The ends want different numbers of retries while no receive is posted.",
	  .remedy = "Set the same rnr_retry_count at both ends." },
	{ REJECTED(30), .what = "{rejecter} already has a connection with comm id {comm_id} of this CA (REJ {reason}).",
	  .cause = "A client's connection manager restarted and reuses comm ids, or two hosts have the same CA GUID.",
	  .remedy = "Try again; compare the node GUIDs of both hosts (`ibv_devinfo`)." },
	{ REJECTED(31), .what = "{rejecter} does not support this version of the protocol (REJ {reason}).",
	  .cause = "The class version of the message is not 2. It supports {ari}.",
	  .remedy = "Update the sender." },
	{ REJECTED(35), .what = "{rejecter} refuses a vendor option (REJ {reason}).",
	  .cause = "The ends do not agree on enhanced connection establishment (ECE).",
	  .remedy = "Connect without rdma_set_local_ece()." },
	{ REJECTED(ADVICE_ANY), .what = "{rejecter} refuses the request (REJ {reason}). Additional information: {ari}.",
	  .cause = "Connection managers rarely give this reason.",
	  .remedy = "See table 109 of the InfiniBand specification, volume 1, and `purecm trace -v`." },

	/* --- disconnect -------------------------------------------------- */
	{ CLOSING, .fits = { context_dreq_names_other_qpn },
	  .what = "{closer} disconnects ({dreqs}) and names queue pair {dreq_qpn}, but {closed} has queue pair {true_qpn}.",
	  .cause = "A DREQ for another queue pair is ignored.",
	  .remedy = "Check the sender: it has confused two connections." },
	{ CLOSING, .fits = { context_has_just_begun },
	  .what = "{closer} disconnects ({dreqs}), and then the trace ends.",
	  .cause = "The trace ends before an answer is due; it need not be a failure.",
	  .remedy = "Capture for longer." },
	{ CLOSING,
	  .what = "{closer} disconnects ({dreqs}); {closed} does not answer.",
	  .cause = "The program at {closed} has not called rdma_disconnect() on RDMA_CM_EVENT_DISCONNECTED, its host is gone, or packets are lost. A stock host that destroys an id sends one DREQ and does not wait; that is harmless.",
	  .remedy = "Make the program at {closed} take its events and call rdma_disconnect()." },

	/* --- datagrams --------------------------------------------------- */
	{ SIDR(1), .what = "{passive} answers that nobody listens at {service} (SIDR status {status}).",
	  .cause = "The server does not run or listens on another port.",
	  .remedy = "Start the server; compare ports: on {passive} `purecm stat` shows who listens." },
	{ SIDR(2), .what = "{passive} refuses (SIDR status {status}).",
	  .cause = "The server's program rejected it, its backlog is full, or it is bound to another address.",
	  .remedy = "See the server's log and the address that it is bound to." },
	{ SIDR(3), .what = "{passive} has no queue pair for it (SIDR status {status}).",
	  .cause = "The server could not create one.",
	  .remedy = "On {passive} see `rdma resource` and the program's limits." },
	{ SIDR(4), .what = "{passive} redirects the request (SIDR status {status}).",
	  .cause = "Redirection; Linux never follows one.",
	  .remedy = "Use the address that it names." },
	{ SIDR(5), .what = "{passive} does not support this version (SIDR status {status}).",
	  .cause = "The ends have different versions of the protocol.",
	  .remedy = "Update the older one." },
	{ SIDR(ADVICE_ANY), .what = "{passive} refuses with the unknown status {status}.",
	  .cause = "No known connection manager gives this status.",
	  .remedy = "See `purecm trace -v`." },
};
/* clang-format on */

#define N_ADVICE (sizeof(table) / sizeof(table[0]))

static int reason_of(const struct flow *flow)
{
	return flow->is_sidr ? flow->sidr_rep.status : flow->rej.reason;
}

static bool advice_fits(const struct advice *advice, const struct context *context)
{
	const struct flow *flow = context->flow;
	size_t i;

	if (advice->outcome != flow->outcome || advice->is_sidr != flow->is_sidr)
		return false;
	if (advice->reason != ADVICE_ANY && advice->reason != reason_of(flow))
		return false;
	for (i = 0; i < sizeof(advice->fits) / sizeof(advice->fits[0]); i++) {
		if (advice->fits[i] && !advice->fits[i](context))
			return false;
	}
	return true;
}

const struct advice *advice_find(const struct context *context)
{
	size_t i;

	for (i = 0; i < N_ADVICE; i++) {
		if (advice_fits(&table[i], context))
			return &table[i];
	}
	return NULL;
}

const struct advice *advice_get(size_t index)
{
	return index < N_ADVICE ? &table[index] : NULL;
}
