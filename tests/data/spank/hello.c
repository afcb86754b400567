/* The smallest SPANK plugin with an option: `srun --hello` gives each task the variable HELLO. */
#include <stddef.h>

#include <slurm/spank.h>

SPANK_PLUGIN(hello, 1)

static int asked;

static int ask(int value, const char *argument, int remote)
{
	asked = 1;
	return ESPANK_SUCCESS;
}

static struct spank_option option = {"hello", NULL, "Greet each task.", 0, 0, ask};

int slurm_spank_init(spank_t spank, int argc, char *argv[])
{
	return spank_option_register(spank, &option);
}

int slurm_spank_task_init(spank_t spank, int argc, char *argv[])
{
	return asked ? spank_setenv(spank, "HELLO", "from spank_pyxis.so", 1) : ESPANK_SUCCESS;
}
