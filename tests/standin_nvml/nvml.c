/* A stand-in libnvidia-ml.so.1 for injecting errors, never for accuracy.
 *
 * Layouts and numbers follow nvml.h as nvidia-ml-py knows it. What it answers comes from the file
 * named by STANDIN_NVML, read anew when another file has taken its place, so a test can change it
 * while a source runs (the names of the calls are written to the file named by STANDIN_NVML_LOG):
 *
 *   gpus N                       number of GPUs (1)
 *   fail CALL CODE [GPU]         the call returns this code ("*": every call on a device)
 *   field_fail ID CODE           the field value carries this code
 *   field ID VALUE               the field value (unsigned)
 *   hang CALL                    the call does not return while the line is there
 *   cost CALL US                 the call takes this much CPU, as the driver's does
 *   lost GPU                     the GPU has fallen off the bus
 *   mig GPU                      MIG mode with three instances: 2/0, 2/1, 3/0
 *   process GPU PID BYTES LIST   LIST: compute, graphics, mps
 *   share GPU PID SM MEMORY      percent
 *   xid GPU NUMBER               one event for each such line
 *   set NAME VALUE               architecture, virtualization, gpm, nan, reasons, utilization,
 *                                link_count, power_ring, power_limit_mw, memory_used,
 *                                event_types, sentinels, wave_ms (period of the power ring)
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

typedef int Return;
typedef unsigned long long U64;
typedef struct Device { int gpu, gi, ci; } Device;
typedef union { double d; unsigned int ui; unsigned long ul; U64 ull; long long sll; int si; } Value;
typedef struct { unsigned int gpu, memory; } Utilization;
typedef struct { U64 total, free, used; } Memory;
typedef struct { unsigned int version; U64 total, reserved, free, used; } Memory2;
typedef struct {
    char legacy[16];
    unsigned int domain, bus, device, id, subsystem;
    char bus_id[32];
} Pci;
typedef struct {
    unsigned int field, scope;
    long long timestamp, latency;
    unsigned int type;
    Return code;
    Value value;
} Field;
typedef struct { U64 timestamp; Value value; } Sample;
typedef struct { unsigned int pid; U64 memory; unsigned int gi, ci; } Process;
typedef struct { unsigned int pid; U64 timestamp; unsigned int sm, memory, enc, dec; } Share;
typedef struct { Device *device; U64 type, data; unsigned int gi, ci; } Event;
typedef struct { unsigned int version, supported; } GpmSupport;
typedef struct { unsigned int id; Return code; double value; char *info[3]; } GpmMetric;
typedef struct { double t; int number; } GpmSample;
typedef struct { unsigned int version, count; GpmSample *a, *b; GpmMetric metrics[]; } GpmGet;
typedef struct { unsigned int sm, rest[7]; U64 memory_mb; } Attributes;
typedef struct { unsigned int version; int margin; } Margin;

#define OK 0
#define MAX_GPUS 8
#define INSTANCES 3
static Device gpus[MAX_GPUS], instances[MAX_GPUS][INSTANCES];
static int started, xids_given, gpm_samples;

static const struct { const char *name; Return code; } CODES[] = {
    {"SUCCESS", 0}, {"UNINITIALIZED", 1}, {"INVALID_ARGUMENT", 2}, {"NOT_SUPPORTED", 3},
    {"NO_PERMISSION", 4}, {"NOT_FOUND", 6}, {"DRIVER_NOT_LOADED", 9}, {"TIMEOUT", 10},
    {"FUNCTION_NOT_FOUND", 13}, {"GPU_IS_LOST", 15}, {"RESET_REQUIRED", 16},
    {"LIB_RM_VERSION_MISMATCH", 18}, {"NO_DATA", 21}, {"UNKNOWN", 999},
};

static Return code_of(const char *name) {
    for (size_t i = 0; i < sizeof CODES / sizeof *CODES; i++)
        if (!strcmp(CODES[i].name, name)) return CODES[i].code;
    fprintf(stderr, "stand-in NVML: unknown code %s\n", name);
    abort();
}

/* The lines of the script, in words. */
#define LINES 512
static struct { char text[160]; char *words[8]; int n; } lines[LINES];
static int line_count;
static void load(void) {
    static struct stat before;
    struct stat now;
    const char *path = getenv("STANDIN_NVML");
    if (!path || stat(path, &now)) { line_count = 0; return; }
    if (now.st_ino == before.st_ino && now.st_size == before.st_size &&
        !memcmp(&now.st_mtim, &before.st_mtim, sizeof now.st_mtim))
        return;
    before = now;
    line_count = 0;
    FILE *file = fopen(path, "r");
    while (file && line_count < LINES && fgets(lines[line_count].text, 160, file)) {
        char *save = NULL, *w = strtok_r(lines[line_count].text, " \n", &save);
        int n = 0;
        for (; w && n < 8; w = strtok_r(NULL, " \n", &save)) lines[line_count].words[n++] = w;
        lines[line_count].n = n;
        line_count += n > 0;
    }
    if (file) fclose(file);
}

/* Calls visit(words, n, arg) for each line of the script whose first word is `kind`. */
typedef void Visit(char **words, int n, void *arg);
static void script(const char *kind, Visit *visit, void *arg) {
    load();
    for (int i = 0; i < line_count; i++)
        if (!strcmp(lines[i].words[0], kind)) visit(lines[i].words, lines[i].n, arg);
}

struct setting { const char *name; long long value; };
static void visit_set(char **w, int n, void *arg) {
    struct setting *s = arg;
    if (n > 2 && !strcmp(w[1], s->name)) s->value = atoll(w[2]);
}
static long long set(const char *name, long long otherwise) {
    struct setting s = {name, otherwise};
    script("set", visit_set, &s);
    return s.value;
}
static void visit_gpus(char **w, int n, void *arg) { if (n > 1) *(int *)arg = atoi(w[1]); }
static int gpu_count(void) {
    int n = 1;
    script("gpus", visit_gpus, &n);
    return n < MAX_GPUS ? n : MAX_GPUS;
}

struct gate { const char *call; int gpu; Return code; int hang, lost; };
static void visit_fail(char **w, int n, void *arg) {
    struct gate *g = arg;
    int all = n > 2 && !strcmp(w[1], "*") && g->gpu >= 0;
    if (n > 2 && (all || !strcmp(w[1], g->call)) && (n < 4 || atoi(w[3]) == g->gpu))
        g->code = code_of(w[2]);
}
static void visit_hang(char **w, int n, void *arg) {
    struct gate *g = arg;
    if (n > 1 && !strcmp(w[1], g->call)) g->hang = 1;
}
static void visit_gpu(char **w, int n, void *arg) {
    struct gate *g = arg;
    if (n > 1 && atoi(w[1]) == g->gpu) g->lost = 1;
}
static void note(const char *call) {
    const char *path = getenv("STANDIN_NVML_LOG");
    FILE *file = path ? fopen(path, "a") : NULL;
    if (file) fprintf(file, "%s\n", call), fclose(file);
}
struct cost { const char *call; double seconds; };
static void visit_cost(char **w, int n, void *arg) {
    struct cost *c = arg;
    if (n > 2 && !strcmp(w[1], c->call)) c->seconds = atof(w[2]) * 1e-6;
}
static double cpu_s(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return t.tv_sec + t.tv_nsec * 1e-9;
}
static void spend(const char *call) {
    struct cost c = {call, 0.0};
    script("cost", visit_cost, &c);
    for (double until = c.seconds > 0.0 ? cpu_s() + c.seconds : 0.0; until && cpu_s() < until;) {}
}
static Return gate(const char *call, const Device *device) {
    note(call);
    spend(call);
    struct gate g = {call, device ? device->gpu : -1, OK, 0, 0};
    for (script("hang", visit_hang, &g); g.hang; script("hang", visit_hang, &g)) {
        g.hang = 0;
        usleep(10000);
    }
    if (!started && strncmp(call, "nvmlInit", 8)) return 1;
    script("lost", visit_gpu, &g);
    if (g.lost) return 15;
    script("fail", visit_fail, &g);
    return g.code;
}
static int in_mig(const Device *device) {
    struct gate g = {"", device->gpu, OK, 0, 0};
    script("mig", visit_gpu, &g);
    return g.lost;
}
#define ENTER(call, device) do { Return r_ = gate(call, device); if (r_) return r_; } while (0)
#define NOT_IN_MIG(device) do { if ((device)->gi >= 0 || in_mig(device)) return 3; } while (0)
#define NUMBER(call, type, answer) \
    Return call(Device *d, type *out) { ENTER(#call, d); *out = (answer); return OK; }

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return t.tv_sec + t.tv_nsec * 1e-9;
}

/* The library */
Return nvmlInitWithFlags(unsigned int flags) {
    (void)flags;
    ENTER("nvmlInitWithFlags", NULL);
    for (int i = 0; i < MAX_GPUS; i++) {
        static const int ids[INSTANCES][2] = {{2, 0}, {2, 1}, {3, 0}};
        gpus[i] = (Device){i, -1, -1};
        for (int j = 0; j < INSTANCES; j++)
            instances[i][j] = (Device){i, ids[j][0], ids[j][1]};
    }
    started = 1;
    gpm_samples = 0;
    return OK;
}
Return nvmlShutdown(void) { started = 0; return OK; }
const char *nvmlErrorString(Return code) { (void)code; return "stand-in"; }
static Return put(char *out, unsigned int size, const char *text) {
    snprintf(out, size, "%s", text);
    return OK;
}
Return nvmlSystemGetDriverVersion(char *out, unsigned int n) { return put(out, n, "580.159.04"); }
Return nvmlSystemGetNVMLVersion(char *out, unsigned int n) { return put(out, n, "13.580.159"); }
Return nvmlSystemGetCudaDriverVersion_v2(int *out) { *out = 13000; return OK; }

/* Identity */
Return nvmlDeviceGetCount_v2(unsigned int *n) {
    ENTER("nvmlDeviceGetCount_v2", NULL);
    *n = gpu_count();
    return OK;
}
Return nvmlDeviceGetHandleByIndex_v2(unsigned int i, Device **out) {
    if ((int)i >= gpu_count()) return 2;
    ENTER("nvmlDeviceGetHandleByIndex_v2", &gpus[i]);
    *out = &gpus[i];
    return OK;
}
Return nvmlDeviceGetUUID(Device *d, char *out, unsigned int n) {
    ENTER("nvmlDeviceGetUUID", d);
    if (d->gi < 0) snprintf(out, n, "GPU-standin-%d", d->gpu);
    else snprintf(out, n, "MIG-standin-%d-%d-%d", d->gpu, d->gi, d->ci);
    return OK;
}
Return nvmlDeviceGetName(Device *d, char *out, unsigned int n) {
    ENTER("nvmlDeviceGetName", d);
    return put(out, n, d->gi < 0 ? "NVIDIA H200" : "NVIDIA H200 MIG 1g.18gb");
}
Return nvmlDeviceGetPciInfo_v3(Device *d, Pci *out) {
    ENTER("nvmlDeviceGetPciInfo_v3", d);
    memset(out, 0, sizeof *out);
    snprintf(out->bus_id, sizeof out->bus_id, "00000000:%02X:00.0", 0x1A + d->gpu);
    return OK;
}
NUMBER(nvmlDeviceGetArchitecture, unsigned int, set("architecture", 9))
NUMBER(nvmlDeviceGetMinorNumber, unsigned int, d->gpu)
NUMBER(nvmlDeviceGetNumGpuCores, unsigned int, 132 * 128)
NUMBER(nvmlDeviceGetVirtualizationMode, unsigned int, set("virtualization", 0))
Return nvmlDeviceGetCudaComputeCapability(Device *d, int *major, int *minor) {
    ENTER("nvmlDeviceGetCudaComputeCapability", d);
    *major = 9, *minor = 0;
    return OK;
}
Return nvmlDeviceGetMemoryAffinity(Device *d, unsigned int n, unsigned long *set_, int scope) {
    (void)scope;
    ENTER("nvmlDeviceGetMemoryAffinity", d);
    memset(set_, 0, n * sizeof *set_);
    set_[0] = 1ul << (d->gpu / 4);
    return OK;
}
Return nvmlDeviceGetTopologyCommonAncestor(Device *a, Device *b, unsigned int *level) {
    ENTER("nvmlDeviceGetTopologyCommonAncestor", a);
    *level = a->gpu / 4 == b->gpu / 4 ? 40 : 50;
    return OK;
}
Return nvmlDeviceGetP2PStatus(Device *a, Device *b, int index, int *status) {
    (void)b;
    ENTER("nvmlDeviceGetP2PStatus", a);
    *status = index == 2 && set("link_count", 0) ? 0 : 5;
    return OK;
}

/* MIG */
Return nvmlDeviceGetMigMode(Device *d, unsigned int *current, unsigned int *pending) {
    ENTER("nvmlDeviceGetMigMode", d);
    if (d->gi >= 0) return 3;
    *current = *pending = in_mig(d);
    return OK;
}
NUMBER(nvmlDeviceGetMaxMigDeviceCount, unsigned int, in_mig(d) ? 7 : 0)
Return nvmlDeviceGetMigDeviceHandleByIndex(Device *d, unsigned int i, Device **out) {
    ENTER("nvmlDeviceGetMigDeviceHandleByIndex", d);
    if (!in_mig(d) || i >= INSTANCES) return 6;
    *out = &instances[d->gpu][i];
    return OK;
}
NUMBER(nvmlDeviceGetGpuInstanceId, unsigned int, d->gi)
NUMBER(nvmlDeviceGetComputeInstanceId, unsigned int, d->ci)
Return nvmlDeviceGetAttributes_v2(Device *d, Attributes *out) {
    ENTER("nvmlDeviceGetAttributes_v2", d);
    if (d->gi < 0) return 3;
    memset(out, 0, sizeof *out);
    out->sm = d->gi == 2 && d->ci == 0 ? 16 : 32;
    return OK;
}

/* The sample */
Return nvmlDeviceGetUtilizationRates(Device *d, Utilization *out) {
    ENTER("nvmlDeviceGetUtilizationRates", d);
    NOT_IN_MIG(d);
    *out = (Utilization){set("utilization", 97), 40};
    return OK;
}
Return nvmlDeviceGetClockInfo(Device *d, unsigned int clock, unsigned int *mhz) {
    ENTER("nvmlDeviceGetClockInfo", d);
    *mhz = set("sentinels", 0) ? 0xffffffffu : clock == 1 ? 1905 : 3201;
    return OK;
}
NUMBER(nvmlDeviceGetPowerUsage, unsigned int, 238950)
Return nvmlDeviceGetTemperature(Device *d, unsigned int sensor, unsigned int *c) {
    (void)sensor;
    ENTER("nvmlDeviceGetTemperature", d);
    *c = set("sentinels", 0) ? 0xffffffffu : 38;
    return OK;
}
NUMBER(nvmlDeviceGetCurrentClocksEventReasons, U64, set("reasons", 4))
NUMBER(nvmlDeviceGetTotalEnergyConsumption, U64, 3523619)
#define TOTAL (141ull << 30)
Return nvmlDeviceGetMemoryInfo(Device *d, Memory *out) {
    ENTER("nvmlDeviceGetMemoryInfo", d);
    *out = (Memory){TOTAL, TOTAL - (2ull << 30), 2ull << 30};
    return OK;
}
Return nvmlDeviceGetMemoryInfo_v2(Device *d, Memory2 *out) {
    ENTER("nvmlDeviceGetMemoryInfo_v2", d);
    U64 used = set("sentinels", 0) ? ~0ull : (U64)set("memory_used", 1ll << 30);
    *out = (Memory2){out->version, d->gi < 0 ? TOTAL : TOTAL / 7, 616u << 20, 0, used};
    return OK;
}
struct field { unsigned int id; Return code; Value value; int known; };
static void visit_field(char **w, int n, void *arg) {
    struct field *f = arg;
    if (n > 2 && (unsigned)atoi(w[1]) == f->id) f->value.ull = strtoull(w[2], NULL, 10), f->known = 1;
}
static void visit_field_fail(char **w, int n, void *arg) {
    struct field *f = arg;
    if (n > 2 && (unsigned)atoi(w[1]) == f->id) f->code = code_of(w[2]);
}
Return nvmlDeviceGetFieldValues(Device *d, int n, Field *fields) {
    static const U64 known[][2] = {{186, 132060}, {82, 40},  {74, 1160543040}, {76, 0}, {269, 0},
                                   {270, 0},      {271, 0}, {230, 0},         {161, 1}, {162, 2},
                                   {163, 3}};
    ENTER("nvmlDeviceGetFieldValues", d);
    for (int i = 0; i < n; i++) {
        struct field f = {fields[i].field, 3, {0}, 0};
        for (size_t k = 0; k < sizeof known / sizeof *known; k++)
            if (known[k][0] == f.id) f.value.ull = known[k][1], f.known = 1;
        if (f.id == 91) f.value.ull = set("link_count", 0), f.known = 1;
        if (f.id == 193) f.value.si = -8, f.known = 1;
        if (f.id == 194) f.value.si = -2, f.known = 1;
        if (f.id == 196) f.value.si = 0, f.known = 1;
        script("field", visit_field, &f);
        f.code = f.known ? 0 : 3;
        script("field_fail", visit_field_fail, &f);
        fields[i].type = f.id == 74 || f.id > 268 ? 3 : f.id >= 193 && f.id <= 196 ? 5 : 1;
        fields[i].code = f.code;
        fields[i].value = f.value;
    }
    return OK;
}

/* Rings: sample k is taken at k * step; its stamp moves a little from read to read, and its value
 * tells its number. */
Return nvmlDeviceGetSamples(Device *d, unsigned int kind, U64 since, unsigned int *type,
                            unsigned int *n, Sample *out) {
    ENTER("nvmlDeviceGetSamples", d);
    NOT_IN_MIG(d);
    if (kind > 2) return 6;
    double step = kind == 0 ? 0.02 : 0.2;
    int length = kind == 0 ? (int)set("power_ring", 119) : 71;
    long long last = (long long)(now() / step);
    *type = 1;
    if (!out) { *n = length; return OK; }
    static int reads;
    long long shift = (reads++ * 137) % 500 - 250, wave_ms = set("wave_ms", 0);
    int count = 0;
    for (long long k = last - length + 1; k <= last && count < (int)*n; k++) {
        U64 stamp = (U64)(k * step * 1e6) + shift;
        if (stamp <= since) continue;
        out[count].timestamp = stamp;
        out[count++].value.ui = kind == 0 ? 100000 + (unsigned)(k % 1000) : (unsigned)(k % 100);
        if (kind == 0 && wave_ms && k * 20 % wave_ms * 2 < wave_ms)
            out[count - 1].value.ui = 600000; /* 600 W for the first half of each period */
    }
    if (set("sentinels", 0) && count > 2) {
        out[0].timestamp = ~0ull;
        out[1].value.ui = 0xffffffffu;
    }
    *n = count;
    return OK;
}

/* GPM */
Return nvmlGpmQueryDeviceSupport(Device *d, GpmSupport *out) {
    ENTER("nvmlGpmQueryDeviceSupport", d);
    out->supported = set("gpm", 1) != 0;
    return OK;
}
Return nvmlGpmSampleAlloc(GpmSample **out) {
    ENTER("nvmlGpmSampleAlloc", NULL);
    *out = calloc(1, sizeof **out);
    return OK;
}
Return nvmlGpmSampleFree(GpmSample *sample) { free(sample); return OK; }
static void take(GpmSample *sample) {
    sample->t = now();
    sample->number = gpm_samples++;
}
Return nvmlGpmSampleGet(Device *d, GpmSample *sample) {
    ENTER("nvmlGpmSampleGet", d);
    NOT_IN_MIG(d);
    take(sample);
    return OK;
}
Return nvmlGpmMigSampleGet(Device *d, unsigned int gi, GpmSample *sample) {
    (void)gi;
    ENTER("nvmlGpmMigSampleGet", d);
    take(sample);
    return OK;
}
Return nvmlGpmMetricsGet(GpmGet *get) {
    ENTER("nvmlGpmMetricsGet", NULL);
    double dt = get->b->t - get->a->t;
    for (unsigned int i = 0; i < get->count; i++) {
        GpmMetric *m = &get->metrics[i];
        m->code = OK;
        m->value = m->id < 20 ? 10.0 * m->id : m->id;
        if (dt < 0.1) m->value = m->id == 10 ? NAN : 100.0 * (get->b->number % 2);
        if (m->id == 10 && set("nan", 0)) m->value = NAN;
        if (get->a->number == 0) m->value = 0.0;
        if (m->id >= 60 && !set("link_count", 0)) m->code = 3;
    }
    return OK;
}

/* Processes */
struct list { int gpu; const char *name; Process *out; unsigned int n, room; };
static void visit_process(char **w, int n, void *arg) {
    struct list *l = arg;
    if (n < 5 || atoi(w[1]) != l->gpu || strcmp(w[4], l->name)) return;
    if (l->out && l->n < l->room)
        l->out[l->n] = (Process){strtoul(w[2], NULL, 10), strtoull(w[3], NULL, 10), ~0u, ~0u};
    l->n++;
}
static Return processes(Device *d, const char *name, unsigned int *n, Process *out) {
    struct list l = {d->gpu, name, out, 0, *n};
    script("process", visit_process, &l);
    *n = l.n;
    return !out && l.n ? 7 : OK;
}
#define PROCESSES(call, name) \
    Return call(Device *d, unsigned int *n, Process *out) { \
        ENTER(#call, d); \
        return processes(d, name, n, out); \
    }
PROCESSES(nvmlDeviceGetComputeRunningProcesses_v2, "compute")
PROCESSES(nvmlDeviceGetComputeRunningProcesses_v3, "compute")
PROCESSES(nvmlDeviceGetGraphicsRunningProcesses_v3, "graphics")
PROCESSES(nvmlDeviceGetMPSComputeRunningProcesses_v3, "mps")

struct shares { int gpu; Share *out; unsigned int n; U64 t; };
static void visit_share(char **w, int n, void *arg) {
    struct shares *s = arg;
    if (n < 5 || atoi(w[1]) != s->gpu) return;
    if (s->out)
        s->out[s->n] = (Share){strtoul(w[2], NULL, 10), s->t, atoi(w[3]), atoi(w[4]), 0, 0};
    s->n++;
}
Return nvmlDeviceGetProcessUtilization(Device *d, Share *out, unsigned int *n, U64 since) {
    ENTER("nvmlDeviceGetProcessUtilization", d);
    NOT_IN_MIG(d);
    U64 t = (U64)(floor(now() * 10) * 1e5);
    struct shares s = {d->gpu, out, 0, t};
    if (since == 0) abort(); /* the whole buffer: what the source must never ask for */
    script("share", visit_share, &s);
    if (t <= since || !s.n) return 6;
    *n = s.n;
    return out ? OK : 7;
}

/* Limits */
Return nvmlDeviceGetMaxClockInfo(Device *d, unsigned int clock, unsigned int *mhz) {
    ENTER("nvmlDeviceGetMaxClockInfo", d);
    *mhz = clock == 2 ? 3201 : 1980;
    return OK;
}
Return nvmlDeviceGetApplicationsClock(Device *d, unsigned int clock, unsigned int *mhz) {
    ENTER("nvmlDeviceGetApplicationsClock", d);
    *mhz = clock == 2 ? 3201 : 1980;
    return OK;
}
NUMBER(nvmlDeviceGetEnforcedPowerLimit, unsigned int, set("power_limit_mw", 700000))
NUMBER(nvmlDeviceGetPowerManagementDefaultLimit, unsigned int, 700000)
Return nvmlDeviceGetPowerManagementLimitConstraints(Device *d, unsigned int *a, unsigned int *b) {
    ENTER("nvmlDeviceGetPowerManagementLimitConstraints", d);
    *a = 200000, *b = 700000;
    return OK;
}
Return nvmlDeviceGetTemperatureThreshold(Device *d, unsigned int which, unsigned int *c) {
    static const unsigned int limits[] = {95, 89, 0, 87};
    ENTER("nvmlDeviceGetTemperatureThreshold", d);
    if (which > 3) return 2;
    *c = limits[which];
    return OK;
}
Return nvmlDeviceGetMarginTemperature(Device *d, Margin *out) {
    ENTER("nvmlDeviceGetMarginTemperature", d);
    out->margin = 49;
    return OK;
}
NUMBER(nvmlDeviceGetCurrPcieLinkGeneration, unsigned int, 5)
NUMBER(nvmlDeviceGetMaxPcieLinkGeneration, unsigned int, 5)
NUMBER(nvmlDeviceGetCurrPcieLinkWidth, unsigned int, 16)
NUMBER(nvmlDeviceGetMaxPcieLinkWidth, unsigned int, 16)
Return nvmlDeviceGetPcieThroughput(Device *d, int counter, unsigned int *out) {
    (void)d, (void)counter, (void)out;
    abort(); /* it blocks for 20 ms: the source must never call it */
}
Return nvmlDeviceGetNvLinkState(Device *d, unsigned int link, unsigned int *up) {
    ENTER("nvmlDeviceGetNvLinkState", d);
    if ((int)link >= set("link_count", 0)) return 2;
    *up = link != 1;
    return OK;
}

/* Health */
Return nvmlDeviceGetTotalEccErrors(Device *d, int error, int counter, U64 *out) {
    ENTER("nvmlDeviceGetTotalEccErrors", d);
    *out = 10 * counter + error;
    return OK;
}
Return nvmlDeviceGetRemappedRows(Device *d, unsigned int *a, unsigned int *b, unsigned int *p,
                                 unsigned int *f) {
    ENTER("nvmlDeviceGetRemappedRows", d);
    *a = 1, *b = 2, *p = 1, *f = 0;
    return OK;
}
NUMBER(nvmlDeviceGetPcieReplayCounter, unsigned int, set("sentinels", 0) ? 0xffffffffu : 3)

/* Events */
Return nvmlEventSetCreate(void **out) { ENTER("nvmlEventSetCreate", NULL); *out = gpus; return OK; }
Return nvmlEventSetFree(void *s) { (void)s; return OK; }
NUMBER(nvmlDeviceGetSupportedEventTypes, U64, set("event_types", 8))
Return nvmlDeviceRegisterEvents(Device *d, U64 types, void *s) {
    (void)types, (void)s;
    ENTER("nvmlDeviceRegisterEvents", d);
    return OK;
}
struct xids { int seen; Event *out; int found; };
static void visit_xid(char **w, int n, void *arg) {
    struct xids *x = arg;
    if (n < 3 || x->seen++ != xids_given || x->found) return;
    *x->out = (Event){&gpus[atoi(w[1])], 8, strtoull(w[2], NULL, 10), ~0u, ~0u};
    x->found = 1;
}
Return nvmlEventSetWait_v2(void *s, Event *out, unsigned int ms) {
    (void)s;
    ENTER("nvmlEventSetWait_v2", NULL);
    if (ms) abort(); /* waiting would hold up everything else */
    struct xids x = {0, out, 0};
    script("xid", visit_xid, &x);
    xids_given += x.found;
    return x.found ? OK : 10;
}
