// ISA-L on the same requests as bench.go: "variant op k m bytes lost iterations" a line, microseconds per call back.
// Variant "sse" forces the kernel that is most like ours (16-byte vectors), "default" takes the best the machine has.
// The coefficients are those of a Cauchy matrix: the time does not depend on their values.
#include <isa-l/erasure_code.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define ROWS_MAX 256

static unsigned char *shards[ROWS_MAX];

static void allocate(int count, int bytes) {
  for (int i = 0; i < count; i++) {
    free(shards[i]);
    if (posix_memalign((void **)&shards[i], 64, bytes)) exit(1);
    for (int at = 0; at < bytes; at++) shards[i][at] = rand() >> 7;
  }
}

static double now_us(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1e6 + t.tv_nsec / 1e3;
}

int main(void) {
  static unsigned char matrix[ROWS_MAX * ROWS_MAX], tables[32 * ROWS_MAX * ROWS_MAX];
  char variant[16], op[16];
  int k, m, bytes, lost, iterations, allocated[2] = {0, 0};
  while (scanf("%15s %15s %d %d %d %d %d", variant, op, &k, &m, &bytes, &lost, &iterations) == 7) {
    int rows = strcmp(op, "encode") ? lost : m, shard_bytes = (bytes + k - 1) / k;
    if (k < 1 || rows < 1 || k + rows > ROWS_MAX) return 1;
    if (allocated[0] != k + rows || allocated[1] != shard_bytes) {
      allocate(k + rows, shard_bytes);
      allocated[0] = k + rows;
      allocated[1] = shard_bytes;
    }
    gf_gen_cauchy1_matrix(matrix, k + rows, k);
    ec_init_tables(k, rows, matrix + k * k, tables);
    double start = now_us();
    for (int i = 0; i < iterations; i++) {
      if (strcmp(variant, "sse"))
        ec_encode_data(shard_bytes, k, rows, tables, shards, shards + k);
      else
        ec_encode_data_sse(shard_bytes, k, rows, tables, shards, shards + k);
    }
    printf("%.3f\n", (now_us() - start) / iterations);
    fflush(stdout);
  }
  return 0;
}
