// The command line as a tree.

export { buildProgram } from '../../cli/run.js';
export { listHelpTexts } from '../../cli/help-texts.js';
export { RETAINED_DATA } from '../../cli/doctor/retained-data.js';
export type { Context, Loss } from '../../cli/shell/context.js';
export { isAudited } from '../../cli/shell/record-audit.js';
export { COMMANDS, ROOT_EXAMPLES } from '../../cli/commands/index.js';
export type { CommandNode, CommandEntry, LoadedCommand } from '../../cli/shell/command.js';
