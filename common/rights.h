/* SPDX-License-Identifier: ISC */

/*
 * What k8sd may do in a namespace, and no more: k8sd asks the API server
 * whether it may, and egressctl prints the Role that permits it.
 *
 *	R(group, resource, subresource, verb)
 *
 * exec by WebSocket wants get, and of newer servers create as well.
 */

#ifndef RIGHTS_H
#define RIGHTS_H

#define KUBE_RIGHTS(R) \
	R("", "pods", "", "get") \
	R("", "pods", "", "list") \
	R("", "pods", "", "watch") \
	R("", "pods", "", "create") \
	R("", "pods", "", "patch") \
	R("", "pods", "", "delete") \
	R("", "pods", "exec", "get") \
	R("", "pods", "exec", "create") \
	R("", "pods", "log", "get") \
	R("", "events", "", "list") \
	R("coordination.k8s.io", "leases", "", "get") \
	R("coordination.k8s.io", "leases", "", "list") \
	R("coordination.k8s.io", "leases", "", "create") \
	R("coordination.k8s.io", "leases", "", "patch") \
	R("coordination.k8s.io", "leases", "", "delete")

/* And in one where pods have a gate. */
#define KUBE_GATE_RIGHTS(R) \
	R("", "secrets", "", "get") \
	R("", "secrets", "", "create") \
	R("", "secrets", "", "update") \
	R("", "secrets", "", "delete") \
	R("networking.k8s.io", "networkpolicies", "", "get") \
	R("networking.k8s.io", "networkpolicies", "", "create") \
	R("networking.k8s.io", "networkpolicies", "", "update") \
	R("networking.k8s.io", "networkpolicies", "", "delete")

#endif /* RIGHTS_H */
