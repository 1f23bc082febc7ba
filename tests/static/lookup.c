/* Looks up a group that is not there, as a static program does that restricts no source. */
#include <grp.h>
#include <stddef.h>
int main(void) { return getgrnam("nosuch") == NULL ? 0 : 1; }
