#!/usr/bin/python3
# SPDX-License-Identifier: ISC

"""etc/kubernetes: that its files fit each other, the documentation, and what
the daemon makes in a cluster.  No cluster is asked."""

import copy
import functools
import json
import pathlib
import re
import subprocess
import sys
import tempfile

import yaml     # python3-yaml

TOP = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "regress" / "lib"))
from case import Cases  # noqa: E402
from daemon import BUILD, EGRESSCTL  # noqa: E402
from standin_cel import CelError, evaluate  # noqa: E402

cases = Cases()
HERE = TOP / "etc" / "kubernetes"
GOLDEN = TOP / "regress" / "unit" / "manifest"
NAMESPACE = "agents"
CLUSTER_WIDE = {"Namespace", "ValidatingAdmissionPolicy",
                "ValidatingAdmissionPolicyBinding"}
DAEMON = f"system:serviceaccount:{NAMESPACE}:egressd"
REPLICAS = "system:serviceaccount:kube-system:replicaset-controller"


@functools.cache
def objects():
    """By kind, all that the files have; each kind is there once."""
    found = {}
    for path in sorted(HERE.glob("*.yaml")):
        for one in yaml.safe_load_all(path.read_text()):
            assert one["kind"] not in found, one["kind"]
            found[one["kind"]] = one
    return found


def conf():
    return (HERE / "egressd.conf").read_text()


def with_conf(*argv):
    """What a program prints that has the example as its configuration."""
    with tempfile.NamedTemporaryFile("w", suffix=".conf") as file:
        file.write(conf())
        file.flush()
        done = subprocess.run([w if w != "CONF" else file.name for w in argv],
                              stdin=subprocess.DEVNULL, capture_output=True,
                              text=True, timeout=240)
    assert done.returncode == 0, done.stderr
    return done.stdout


def said(statement):
    """What stands in quotes behind this in the example configuration."""
    one, = re.findall(rf'^\s*{statement} "([^"]*)"', conf(), flags=re.M)
    return one


def template():
    return objects()["Deployment"]["spec"]["template"]


def daemon():
    """The control host's only container."""
    one, = template()["spec"]["containers"]
    return one


def volume(name):
    one, = [v for v in template()["spec"]["volumes"] if v["name"] == name]
    return one


def mounted(name):
    one, = [m for m in daemon()["volumeMounts"] if m["name"] == name]
    return one["mountPath"]


# ---- files ------------------------------------------------------------------

@cases.case
def all_are_objects():
    wanted = {"Namespace", "ServiceAccount", "Role", "RoleBinding",
              "PersistentVolumeClaim", "Deployment", "NetworkPolicy",
              "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"}
    assert set(objects()) == wanted, set(objects()) ^ wanted
    for kind, one in objects().items():
        assert one["apiVersion"] and one["metadata"]["name"], one
        space = one["metadata"].get("namespace")
        assert space == (None if kind in CLUSTER_WIDE else NAMESPACE), one
    assert objects()["Namespace"]["metadata"]["name"] == NAMESPACE
    labels = objects()["Namespace"]["metadata"]["labels"]
    assert labels["pod-security.kubernetes.io/enforce"] == "privileged"


@cases.case
def the_readme_names_them():
    text = (HERE / "README.md").read_text()
    assert len(text.splitlines()) <= 40
    for path in HERE.glob("*.yaml"):
        assert f"-f {path.name}" in text, path.name
    assert (f"kubectl -n {NAMESPACE} create secret generic "
            f"{volume('conf')['secret']['secretName']} "
            "--from-file=egressd.conf\n") in text
    name = objects()["Deployment"]["metadata"]["name"]
    assert f"exec -it deploy/{name} -- egressctl'" in text


@cases.case
def the_configuration_is_sound():
    with_conf(BUILD / "egressd", "-n", "-f", "CONF")
    assert said("namespace") == NAMESPACE
    assert "\n\tungated" not in conf()


@cases.case
def the_role_is_what_egressctl_prints():
    text = with_conf(EGRESSCTL, "-f", "CONF", "cluster", "rbac", "pod")
    role, binding = yaml.safe_load_all(text)
    assert objects()["Role"] == role, role
    assert objects()["RoleBinding"] == binding, binding
    subject, = binding["subjects"]
    account = objects()["ServiceAccount"]["metadata"]
    assert subject == {"kind": "ServiceAccount", "name": account["name"],
                       "namespace": account["namespace"]}, subject


# ---- control host -----------------------------------------------------------

@cases.case
def the_control_host_finds_its_files():
    spec = template()["spec"]
    assert spec["serviceAccountName"] == \
        objects()["ServiceAccount"]["metadata"]["name"]
    assert spec["automountServiceAccountToken"] is True
    claim = volume("audit")["persistentVolumeClaim"]["claimName"]
    assert claim == objects()["PersistentVolumeClaim"]["metadata"]["name"]
    assert pathlib.PurePath(said("audit file")).parent == \
        pathlib.PurePath(mounted("audit"))
    assert daemon()["args"] == ["-d", "-f", f"{mounted('conf')}/egressd.conf"]
    assert volume("conf")["secret"]["defaultMode"] == 0o400
    assert "/run" not in [m["mountPath"] for m in daemon()["volumeMounts"]]


@cases.case
def there_is_one_control_host():
    spec = objects()["Deployment"]["spec"]
    assert spec["replicas"] == 1 and spec["strategy"] == {"type": "Recreate"}
    for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
        assert daemon()[probe]["exec"]["command"] == [
            "egressctl", "status", "-q"], probe


@cases.case
def its_capabilities_are_those_documented():
    """And those that a test on a real cluster gets by with."""
    words = re.search(r"with the capabilities `([A-Z_ ]*)`", " ".join(
        (TOP / "doc" / "cluster.md").read_text().split()))[1].split()
    capabilities = daemon()["securityContext"]["capabilities"]
    assert capabilities == {"drop": ["ALL"], "add": words}, capabilities
    tried = re.search(r"^CAPABILITIES = (\[.*\])$", (
        TOP / "regress" / "k8s" / "incluster.py").read_text(), re.M)[1]
    assert json.loads(tried) == words, tried


@cases.case
def it_is_no_pod_of_a_session():
    """By its labels: the daemon would reap it, and the NetworkPolicy of the
    one would be the other's."""
    labels = template()["metadata"]["labels"]
    deployment = objects()["Deployment"]
    assert deployment["spec"]["selector"] == {"matchLabels": labels}
    assert objects()["NetworkPolicy"]["spec"]["podSelector"] == {
        "matchLabels": labels}
    for pod in (printed(), printed("-o")):
        assert not set(pod["metadata"]["labels"]) & set(labels), labels


@cases.case
def what_the_control_host_reaches():
    spec = objects()["NetworkPolicy"]["spec"]
    assert spec["policyTypes"] == ["Ingress", "Egress"]
    assert spec["ingress"] == []
    dns, server, deciders = spec["egress"]
    assert {p["port"] for p in dns["ports"]} == {53}
    for rule in (server, deciders):
        assert {p["protocol"] for p in rule["ports"]} == {"TCP"}, rule
    assert all(to["ipBlock"]["cidr"].endswith("/32") for to in server["to"])
    # What is private to the daemon's gates is private here.
    items = printed_items()
    gate, = [i for i in items if i["kind"] == "NetworkPolicy"]
    assert deciders["to"] == gate["spec"]["egress"][-1]["to"], deciders


# ---- admission --------------------------------------------------------------

def printed_items(*options):
    text = with_conf(EGRESSCTL, "-f", "CONF", "cluster", "manifest", *options,
                     "pod")
    return json.loads(text)["items"]


@functools.cache
def printed(*options):
    return next(i for i in printed_items(*options) if i["kind"] == "Pod")


def image():
    return daemon()["image"]


def golden(name):
    """A manifest of the unit tests, with our image by the name it has here."""
    pod = json.loads((GOLDEN / f"{name}.json").read_text())
    for one in every(pod):
        if one["name"] != "workspace":
            one["image"] = image()
    return pod


def control_host():
    """The pod of the Deployment, with what the API server puts into it."""
    pod = {"metadata": {"namespace": NAMESPACE}, **copy.deepcopy(template())}
    pod["spec"]["volumes"].append({"name": "kube-api-access-x", "projected": {
        "sources": [{"serviceAccountToken": {"path": "token"}}]}})
    return pod


def every(pod):
    return pod["spec"]["containers"] + pod["spec"].get("initContainers", [])


def container(pod, name):
    one, = [c for c in every(pod) if c["name"] == name]
    return one


def refused(pod, user=DAEMON, operation="CREATE"):
    """Messages of the rules that do not hold.  An error in a rule refuses on
    a server; here it is a fault of ours."""
    spec = objects()["ValidatingAdmissionPolicy"]["spec"]
    variables = {}
    of = {"object": pod, "variables": variables, "request": {
        "operation": operation, "userInfo": {"username": user}}}
    for one in spec["variables"]:
        variables[one["name"]] = evaluate(one["expression"], of)
    found = []
    for rule in spec["validations"]:
        holds = evaluate(rule["expression"], of)
        assert isinstance(holds, bool), rule
        if not holds:
            found.append(rule["message"])
    return found


@cases.case
def the_policy_is_bound_to_the_namespace():
    binding = objects()["ValidatingAdmissionPolicyBinding"]["spec"]
    policy = objects()["ValidatingAdmissionPolicy"]
    assert binding["policyName"] == policy["metadata"]["name"]
    assert binding["validationActions"] == ["Deny"]
    assert binding["matchResources"] == {"namespaceSelector": {"matchLabels": {
        "kubernetes.io/metadata.name": NAMESPACE}}}
    spec = policy["spec"]
    assert spec["failurePolicy"] == "Fail"
    rule, = spec["matchConstraints"]["resourceRules"]
    assert rule["operations"] == ["CREATE", "UPDATE"]
    assert rule["resources"] == ["pods", "pods/ephemeralcontainers"]
    # A message must be one line.
    for rule in spec["validations"]:
        assert "\n" not in rule["message"], rule
    text = (HERE / "admission.yaml").read_text()
    assert "# Tried on no API server" in text


@cases.case
def our_image_is_named_alike():
    assert said("box-image") == image()
    policy = objects()["ValidatingAdmissionPolicy"]["spec"]
    expressions = {v["name"]: v["expression"] for v in policy["variables"]}
    assert expressions["image"] == f"'{image()}'"
    readme = (HERE / "README.md").read_text()
    assert f"docker://{image()}\n" in readme and f"`{image()}`" in readme


@cases.case
def capabilities_are_those_of_the_manifests():
    """Not more: what fence, gate and control host add is what they may."""
    policy = objects()["ValidatingAdmissionPolicy"]["spec"]
    expressions = {v["name"]: v["expression"] for v in policy["variables"]}
    adds = {c["name"]: c["securityContext"]["capabilities"]["add"]
            for pod in (printed(), printed("-o"), control_host())
            for c in every(pod) if c["name"] != "workspace"}
    assert evaluate(expressions["permitted"], {}) == adds, adds


SHAPES = {
    "printed": printed,
    "printed before 1.29": lambda: printed("-o"),
    **{name: functools.partial(golden, name) for name in (
        "gated-1.20", "gated-1.29", "full", "plain", "claim", "live")},
}


@cases.each(SHAPES)
def admitted(name):
    pod = SHAPES[name]()
    # The full one has the account's token, which is for nobody here.
    if pod["spec"].get("automountServiceAccountToken"):
        only, = refused(pod)
        assert "token" in only, only
        pod["spec"]["automountServiceAccountToken"] = False
    assert refused(pod) == []
    # Of who changes a pod, its labels say, no more is asked.
    assert refused(pod, "system:node:a", "UPDATE") == []
    for user in ("kubernetes-admin", REPLICAS,
                 "system:serviceaccount:other:egressd",
                 f"system:serviceaccount:{NAMESPACE}:default"):
        only, = refused(pod, user)
        assert only.startswith("only egressd makes pods"), only


@cases.case
def admitted_control_host():
    assert refused(control_host(), REPLICAS) == []
    assert refused(control_host(), "anybody", "UPDATE") == []
    for user in (DAEMON, "kubernetes-admin"):
        only, = refused(control_host(), user)
        assert only.startswith("only egressd makes pods"), only


def put(pod, path, value):
    """By the words of a path, the name of a container among them; a list is
    put behind the one that is there."""
    *way, last = path.split()
    for word in way:
        if word in ("workspace", "gate", "fence", "egressd"):
            pod = container(pod, word)
        else:
            pod = pod.setdefault(word, {})
    if isinstance(pod.get(last), list) and isinstance(value, list):
        value = pod[last] + value
    pod[last] = value


# What is changed, to what, and a word of the only rule that refuses it.
CAPABILITIES = "securityContext capabilities"
CHANGES = [
    ("spec hostNetwork", True, "hostNetwork"),
    ("spec hostPID", True, "hostPID"),
    ("spec hostIPC", True, "hostIPC"),
    ("spec shareProcessNamespace", True, "shareProcessNamespace"),
    ("spec volumes", [{"name": "x", "hostPath": {"path": "/"}}], "volumes"),
    ("spec volumes", [{"name": "x", "projected": {"sources": []}}], "volumes"),
    ("spec volumes", [{"name": "x", "csi": {"driver": "x"}}], "volumes"),
    ("spec ephemeralContainers", [{"name": "x", "image": "x"}], "ephemeral"),
    ("workspace securityContext privileged", True, "privileged"),
    ("gate securityContext privileged", True, "privileged"),
    ("fence securityContext privileged", True, "privileged"),
    ("workspace securityContext procMount", "Unmasked", "privileged"),
    ("workspace securityContext seccompProfile", {"type": "Unconfined"},
     "privileged"),
    ("gate securityContext seccompProfile", {}, "privileged"),
    *((f"workspace {CAPABILITIES} add", [name], "capabilities")
      for name in ("NET_ADMIN", "NET_RAW", "SYS_ADMIN", "SYS_MODULE",
                   "SYS_RAWIO", "SYS_PTRACE", "BPF", "ALL", "KILL",
                   "CAP_NET_ADMIN")),
    (f"fence {CAPABILITIES} add", ["SYS_ADMIN"], "capabilities"),
    (f"fence {CAPABILITIES} add", ["SETUID"], "capabilities"),
    (f"gate {CAPABILITIES} add", ["NET_RAW"], "capabilities"),
    (f"gate {CAPABILITIES} add", ["ALL"], "capabilities"),
    ("gate image", "docker.io/library/debian", "capabilities"),
    ("fence image", "registry.example.com/egressd:0.1-evil", "capabilities"),
    ("gate name", "workspace-2", "capabilities"),
    # Only the control host's container has that name.
    ("gate name", "egressd", "capabilities"),
    ("workspace securityContext capabilities", {"drop": ["NET_ADMIN"]},
     "NET_RAW"),
    ("workspace securityContext capabilities", {}, "NET_RAW"),
    ("spec automountServiceAccountToken", True, "token"),
]


@cases.each([f"{n} {path}" for n, (path, *_) in enumerate(CHANGES)])
def a_changed_pod_is_refused(name):
    """For that reason alone, made so or changed to it, in both shapes."""
    path, value, why = CHANGES[int(name.split()[0])]
    for shape in (printed(), printed("-o")):
        pod = copy.deepcopy(shape)
        put(pod, path, value)
        for operation in ("CREATE", "UPDATE"):
            found = refused(pod, DAEMON, operation)
            assert len(found) == 1 and why in found[0], (path, value, found)


@cases.case
def what_is_left_out_is_refused():
    """Where the API's default is the other way."""
    pod = copy.deepcopy(printed())
    del pod["spec"]["automountServiceAccountToken"]
    only, = refused(pod)
    assert "token" in only, only
    for one in every(pod):
        del one["securityContext"]
    found = refused(pod)
    assert len(found) == 3, found


@cases.case
def a_changed_control_host_is_refused():
    for path, value, why in (
            ("spec hostNetwork", True, "hostNetwork"),
            ("spec volumes", [{"name": "x", "hostPath": {"path": "/"}}],
             "volumes"),
            (f"egressd {CAPABILITIES} add", ["NET_ADMIN"], "capabilities"),
            ("egressd image", "other", "capabilities"),
            ("egressd name", "gate", "capabilities")):
        pod = control_host()
        put(pod, path, value)
        only, = refused(pod, REPLICAS)
        assert why in only, (path, only)


@cases.case
def a_session_has_not_the_daemons_account():
    """It would count as the control host's, whom only a ReplicaSet makes."""
    pod = copy.deepcopy(printed())
    pod["spec"]["serviceAccountName"] = "egressd"
    assert any(m.startswith("only egressd makes") for m in refused(pod))
    assert any("capabilities" in m for m in refused(pod, REPLICAS))


@cases.case
def the_standin_knows_its_limits():
    """A slip in an expression is an error there, and not an answer."""
    for text in ("object.spec.absent", "object.spec ||", "object.a ? b : c",
                 "'a' && true", "object.spec.containers.map(c, c)",
                 "object.spec.orValue([])", "true)"):
        try:
            value = evaluate(text, {"object": {"spec": {"containers": []}}})
        except CelError:
            continue
        raise AssertionError(f"{text}: {value}")


cases.main()
