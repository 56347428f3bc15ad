import { testHook } from '../../../src/features/hooks/test-hook.js';
import { defineProjectCommand } from '../../ask/choose-project.js';
import { option } from '../../shell/command.js';
import { EXIT } from '../../view/exit.js';
import { eventArgument } from './add.js';

export default defineProjectCommand({
  details:
    'Calls the hook with a document of yours and shows what it answers. Nothing is stored. Exit 1 when it fails.',
  examples: [
    'bsvc hook test orders.create --project shop',
    `bsvc hook test orders.create --project shop --document '{"quantity":2}'`,
  ],
  parameters: {
    event: eventArgument,
    document: option('--document <json>', 'the document that it is asked about', readDocument),
  },
  async run(_context, { app, project, event, document = {} }) {
    const { answer, error } = await testHook(app, project, event, document);
    return {
      json: { event, answer, error },
      quiet: error === null ? 'answered' : 'failed',
      text: () => (error === null ? JSON.stringify(answer, null, 2) : `${event}: failed.`),
      ...(error !== null && {
        failure: { exitCode: EXIT.refused, code: 'HOOK_FAILED', message: `The hook failed: ${error}` },
      }),
    };
  },
});

function readDocument(text: string): Record<string, unknown> {
  const read: unknown = JSON.parse(text);
  if (typeof read === 'object' && read !== null && !Array.isArray(read)) return read as Record<string, unknown>;
  throw new Error('it must be a JSON object.');
}
