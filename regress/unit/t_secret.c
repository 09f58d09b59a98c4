/* SPDX-License-Identifier: ISC */

/* Tests of common/secret.c. */

#include <sys/mman.h>
#include <sys/wait.h>

#include <errno.h>
#include <signal.h>
#include <unistd.h>

#include "test.h"

#include "../../common/secret.h"

/* A pipe that holds the bytes and then ends. */
static int
pipe_with(const void *data, size_t len)
{
	int	 fds[2];

	CHECK_INT(pipe(fds), 0);
	CHECK_INT(write(fds[1], data, len), (ssize_t)len);
	close(fds[1]);
	return fds[0];
}

static struct secret *
read_bytes(const void *data, size_t len, size_t max)
{
	struct secret	*sc;
	int		 fd = pipe_with(data, len), saved;

	errno = 0;
	sc = secret_read_fd(fd, max);
	saved = errno;
	close(fd);
	errno = saved;
	return sc;
}

static void
check_read(const char *data, size_t len, size_t max, const char *want,
    size_t wantlen)
{
	struct secret	*sc = read_bytes(data, len, max);

	CHECK(sc != NULL);
	CHECK_MEM(sc->sc_data, sc->sc_len, want, wantlen);
	CHECK_INT(sc->sc_data[sc->sc_len], 0);
	secret_free(sc);
}

static void
check_unread(const char *data, size_t len, size_t max, int error)
{
	CHECK(read_bytes(data, len, max) == NULL);
	CHECK_INT(errno, error);
}

TEST(alloc)
{
	struct secret	*sc;
	size_t		 i;

	CHECK((sc = secret_alloc(10000)) != NULL);
	CHECK_INT(sc->sc_size, 10000);
	CHECK_INT(sc->sc_len, 0);
	for (i = 0; i <= sc->sc_size; i++)
		CHECK_INT(sc->sc_data[i], 0);
	memset(sc->sc_data, 0x5a, sc->sc_size);
	secret_free(sc);
	secret_free(NULL);
	CHECK(secret_alloc(0) == NULL && errno == EINVAL);
	CHECK(secret_alloc(SECRET_MAX + 1) == NULL && errno == EINVAL);
	CHECK(secret_alloc(SIZE_MAX) == NULL && errno == EINVAL);
}

TEST(read_trims_one_newline)
{
	check_read("key", 3, 100, "key", 3);
	check_read("key\n", 4, 100, "key", 3);
	check_read("key\n\n", 5, 100, "key\n", 4);
	check_read("\nkey", 4, 100, "\nkey", 4);
	check_read("k\0y\n", 4, 100, "k\0y", 3);
}

TEST(read_is_bounded)
{
	check_read("1234", 4, 4, "1234", 4);
	check_read("1234\n", 5, 4, "1234", 4);
	check_unread("12345", 5, 4, EFBIG);
	check_unread("12345\n", 6, 4, EFBIG);
	check_unread("1234\n\n", 6, 4, EFBIG);
	check_unread("1234\n6", 6, 4, EFBIG);
	check_unread("12345\n7", 7, 4, EFBIG);
	check_unread("1", 1, 0, EINVAL);
	check_unread("1", 1, SIZE_MAX, EINVAL);
}

TEST(read_refuses_nothing)
{
	check_unread("", 0, 100, ENODATA);
	check_unread("\n", 1, 100, ENODATA);
	CHECK(secret_read_fd(-1, 100) == NULL);
	CHECK_INT(errno, EBADF);
}

TEST(read_in_pieces)
{
	struct secret	*sc;
	int		 fds[2], i;
	pid_t		 pid;

	CHECK_INT(pipe(fds), 0);
	CHECK((pid = fork()) != -1);
	if (pid == 0) {
		close(fds[0]);
		for (i = 0; i < 1000; i++)
			if (write(fds[1], "0123456789", 10) != 10)
				_exit(1);
		_exit(0);
	}
	close(fds[1]);
	sc = secret_read_fd(fds[0], 10000);
	close(fds[0]);
	CHECK_INT(waitpid(pid, NULL, 0), pid);
	CHECK(sc != NULL);
	CHECK_INT(sc->sc_len, 10000);
	CHECK_MEM(sc->sc_data + 9990, 10, "0123456789", 10);
	secret_free(sc);
}

TEST(equal)
{
	struct secret	*sc = read_bytes("key\n", 4, 100), *empty;

	CHECK(sc != NULL && (empty = secret_alloc(8)) != NULL);
	CHECK(secret_equal(sc, "key", 3));
	CHECK(!secret_equal(sc, "kez", 3));
	CHECK(!secret_equal(sc, "jey", 3));
	CHECK(!secret_equal(sc, "key", 2));
	CHECK(!secret_equal(sc, "key\0", 4));
	CHECK(!secret_equal(sc, "", 0));
	CHECK(!secret_equal(empty, "", 0));
	secret_free(empty);
	secret_free(sc);
}

static const char *volatile	 poked;

/* How a child ends that reads one byte: a signal, or 128 plus the byte. */
static int
fate_of_reading(const void *where)
{
	pid_t	 pid;
	int	 status;

	CHECK((pid = fork()) != -1);
	if (pid == 0) {
		/* Past a sanitizer, which would report and exit instead. */
		signal(SIGSEGV, SIG_DFL);
		poked = where;
		_exit(128 + (*poked & 0x7f));
	}
	CHECK_INT(waitpid(pid, &status, 0), pid);
	return WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status);
}

TEST(fenced_on_both_sides)
{
	size_t		 page = (size_t)sysconf(_SC_PAGESIZE);
	struct secret	*sc = secret_alloc(100);

	CHECK(sc != NULL);
	CHECK_INT(fate_of_reading((char *)sc - 1), SIGSEGV);
	CHECK_INT(fate_of_reading((char *)sc + page), SIGSEGV);
	secret_free(sc);
}

TEST(unmapped_when_freed)
{
	struct secret	*sc = secret_alloc(100);
	const void	*where;

	CHECK(sc != NULL);
	where = sc->sc_data;
	CHECK_INT(fate_of_reading(where), 128);
	secret_free(sc);
	CHECK_INT(fate_of_reading(where), SIGSEGV);
}

TEST(gone_in_a_forked_child)
{
#ifdef MADV_WIPEONFORK
	struct secret	*sc = read_bytes("k", 1, 100);

	CHECK(sc != NULL);
	CHECK_INT(fate_of_reading(sc->sc_data), 128);
	CHECK_STR((char *)sc->sc_data, "k");
	secret_free(sc);
#else
	SKIP("no MADV_WIPEONFORK");
#endif
}

/* The VmFlags of the mapping that begins at an address, from the kernel. */
static int
mapping_flags(const void *where, char *flags, size_t size)
{
	char	 line[512], want[32];
	FILE	*fp;
	int	 found = 0;

	if ((fp = fopen("/proc/self/smaps", "r")) == NULL)
		return 0;
	snprintf(want, sizeof(want), "%jx-", (uintmax_t)(uintptr_t)where);
	flags[0] = '\0';
	while (flags[0] == '\0' && fgets(line, sizeof(line), fp) != NULL) {
		if (strncmp(line, want, strlen(want)) == 0)
			found = 1;
		else if (found && strncmp(line, "VmFlags:", 8) == 0)
			strlcpy(flags, line, size);
	}
	fclose(fp);
	return flags[0] != '\0';
}

TEST(kept_out_of_core_files)
{
	struct secret	*sc = secret_alloc(100);
	char		 flags[512];

	CHECK(sc != NULL);
	if (!mapping_flags(sc, flags, sizeof(flags))) {
		secret_free(sc);
		SKIP("no VmFlags in /proc/self/smaps");
	}
	CHECK_FOR(flags, strstr(flags, " dd") != NULL);
	secret_free(sc);
}

TEST_MAIN("secret")
