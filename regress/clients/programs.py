# SPDX-License-Identifier: ISC

"""The clients: how each is asked to fetch and to send, and how it is found."""

PATH = "/usr/sbin:/usr/bin:/sbin:/bin"
PYTHON = "/usr/bin/python3"     # one that is in the sandbox, too


def program(name):
    """What is needed, and a command that fails if it is not there."""
    return name, ["/bin/sh", "-c", f"command -v {name}"]


def python(module):
    return f"{module} for Python", [PYTHON, "-c", f"import {module}"]


def perl(module):
    return f"{module} for Perl", ["/usr/bin/perl", f"-M{module}", "-e", "1"]


# Shell scripts: the answer to GET $GET goes to the file `got', the file `body'
# is posted to $POST, the answer goes to `reply'.  With each, what it needs.
CLIENTS = {
    "curl": (program("curl"), """
curl -sSf -o got "$GET"
curl -sSf -o reply -H 'Content-Type: application/octet-stream' \\
    --data-binary @body "$POST"
"""),
    "wget": (program("wget"), """
wget -nv -O got "$GET"
wget -nv -O reply --post-file=body "$POST"
"""),
    "python-urllib": (program("/usr/bin/python3"), """
/usr/bin/python3 - <<'END'
import os, urllib.request
ask = urllib.request.urlopen
with ask(os.environ["GET"]) as answer, open("got", "wb") as file:
    file.write(answer.read())
with open("body", "rb") as body, open("reply", "wb") as file:
    file.write(ask(os.environ["POST"], body.read()).read())
END
"""),
    "python-requests": (python("requests"), """
/usr/bin/python3 - <<'END'
import os, requests
with requests.Session() as session, open("body", "rb") as body:
    for name, answer in (
            ("got", session.get(os.environ["GET"])),
            ("reply", session.post(os.environ["POST"], data=body))):
        answer.raise_for_status()
        with open(name, "wb") as file:
            file.write(answer.content)
END
"""),
    "python-httpx": (python("httpx"), """
/usr/bin/python3 - <<'END'
import os, httpx
with httpx.Client() as client, open("body", "rb") as body:
    for name, answer in (
            ("got", client.get(os.environ["GET"])),
            ("reply", client.post(os.environ["POST"], content=body))):
        answer.raise_for_status()
        with open(name, "wb") as file:
            file.write(answer.content)
END
"""),
    "python-aiohttp": (python("aiohttp"), """
/usr/bin/python3 - <<'END'
import asyncio, os, aiohttp
async def main():
    async with aiohttp.ClientSession(raise_for_status=True) as session:
        async with session.get(os.environ["GET"]) as answer:
            with open("got", "wb") as file:
                file.write(await answer.read())
        with open("body", "rb") as body:
            async with session.post(os.environ["POST"], data=body) as answer:
                with open("reply", "wb") as file:
                    file.write(await answer.read())
asyncio.run(main())
END
"""),
    "node-https": (program("node"), """
node - <<'END'
const fs = require("fs"), https = require("https");
const save = (name) => (answer) => {
	if (answer.statusCode !== 200)
		throw new Error(`${name}: ${answer.statusCode}`);
	answer.pipe(fs.createWriteStream(name));
};
https.get(process.env.GET, save("got"));
fs.createReadStream("body").pipe(
    https.request(process.env.POST, { method: "POST" }, save("reply")));
END
"""),
    "node-fetch": (program("node"), """
node - <<'END'
const fs = require("fs");
async function save(name, url, options) {
	const answer = await fetch(url, options);
	if (!answer.ok)
		throw new Error(`${name}: ${answer.status}`);
	fs.writeFileSync(name, Buffer.from(await answer.arrayBuffer()));
}
(async () => {
	await save("got", process.env.GET);
	await save("reply", process.env.POST,
	    { method: "POST", body: fs.readFileSync("body") });
})();
END
"""),
    "java-httpclient": (program("javac"), """
cat >Client.java <<'END'
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse.BodyHandlers;
import java.nio.file.Path;

class Client {
	static void save(HttpRequest.Builder request, String name)
	    throws Exception {
		int status = HttpClient.newHttpClient().send(request.build(),
		    BodyHandlers.ofFile(Path.of(name))).statusCode();
		if (status != 200)
			throw new Exception(name + ": " + status);
	}

	public static void main(String[] args) throws Exception {
		save(HttpRequest.newBuilder(URI.create(System.getenv("GET"))),
		    "got");
		save(HttpRequest.newBuilder(URI.create(System.getenv("POST")))
		    .POST(BodyPublishers.ofFile(Path.of("body"))), "reply");
	}
}
END
java Client.java
"""),
    "perl-http-tiny": (perl("IO::Socket::SSL"), """
perl - <<'END'
use strict; use warnings; use HTTP::Tiny;
sub save {
	my ($name, $answer) = @_;
	die "$name: $answer->{status} $answer->{content}"
	    unless $answer->{success};
	open(my $file, ">:raw", $name) or die;
	print $file $answer->{content};
	close($file) or die;
}
open(my $body, "<:raw", "body") or die;
# Before 0.083 it verifies nothing unless it is told to.
my $http = HTTP::Tiny->new(verify_SSL => 1);
save("got", $http->get($ENV{GET}));
save("reply", $http->post($ENV{POST},
    { content => do { local $/; <$body> } }));
END
"""),
    "perl-lwp": (perl("LWP::Protocol::https"), """
perl - <<'END'
use strict; use warnings; use LWP::UserAgent;
sub save {
	my ($name, $answer) = @_;
	die "$name: " . $answer->status_line unless $answer->is_success;
	open(my $file, ">:raw", $name) or die;
	print $file $answer->content;
	close($file) or die;
}
open(my $body, "<:raw", "body") or die;
my $agent = LWP::UserAgent->new;
save("got", $agent->get($ENV{GET}));
save("reply", $agent->post($ENV{POST}, Content => do { local $/; <$body> }));
END
"""),
    "ruby-net-http": (program("ruby"), """
ruby - <<'END'
require "net/http"
get, post = URI(ENV["GET"]), URI(ENV["POST"])
Net::HTTP.start(get.host, get.port, use_ssl: true) do |http|
  { "got" => http.get(get.path),
    "reply" => http.post(post.path, File.binread("body"),
      "Content-Type" => "application/octet-stream") }.each do |name, answer|
    answer.value
    File.binwrite(name, answer.body)
  end
end
END
"""),
    "openssl-s_client": (program("openssl"), """
talk() {
	openssl s_client -quiet -verify_return_error \\
	    -verify_hostname "${HOST%:*}" -connect "$HOST" >raw
	head -n 1 raw | grep -q ' 200 '
	LC_ALL=C sed '1,/^\\r$/d' raw >"$1"
}
end="Host: $HOST\\r\\nConnection: close\\r\\n"
printf "GET ${GET#https://$HOST} HTTP/1.1\\r\\n$end\\r\\n" | talk got
{
	printf "POST ${POST#https://$HOST} HTTP/1.1\\r\\n$end"
	printf "Content-Length: $(wc -c <body)\\r\\n\\r\\n"
	cat body
} | talk reply
"""),
}

