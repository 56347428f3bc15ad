import { spawn } from 'node:child_process';
import { baseUrl } from '../../src/config/setting-readers.js';
import type { App } from '../../src/app.js';
import type { Operator } from '../../src/features/access/operator.js';
import { makeSignInLink } from '../../src/features/operators/operator-sessions.js';
import { requireOperatorNamed } from '../../src/features/operators/manage-operators.js';
import { defineCommand, flag, optionalArgument, option } from '../shell/command.js';
import type { Context } from '../shell/context.js';
import { findServiceAddress } from '../shell/service-address.js';
import { requireSomeOperators } from './operator.js';

export default defineCommand({
  details:
    'The link works once, within five minutes. The server must be running ("bsvc serve"). Set --url if browsers reach it at another URL than BSVC_PUBLIC_URL, or BSVC_HOST and BSVC_PORT.',
  examples: [
    'bsvc console',
    'bsvc console ann@example.com --no-open',
    'bsvc console --url https://api.example.com --quiet',
  ],
  audited: true,
  parameters: {
    operator: optionalArgument('operator', 'e-mail address or id of the operator; picked from a list when left out'),
    url: option('--url <address>', 'URL of the server', baseUrl),
    noOpen: flag('--no-open', 'only print the link'),
  },
  async run(context, { operator: named, url, noOpen }) {
    const app = await context.app();
    const operator = await chooseOperator(context, app, named);
    if (!app.config.console) context.out.warn('Warning: BSVC_CONSOLE=off: a service set so has no console to open.');
    const { link, expiresAt } = await makeSignInLink(app, operator);
    const base = url?.replace(/\/$/, '') ?? (await findServiceAddress(app));
    const address = `${base}/console/#/enter/${link}`;
    if (!noOpen && context.io.stdout.isTTY) openBrowser(address);
    return {
      json: { url: address, expiresAt: expiresAt.toISOString(), operator: operator.email },
      quiet: address,
      text: () =>
        [`Signs ${operator.email} in at the console, once, until ${expiresAt.toISOString()}:`, '', `  ${address}`].join(
          '\n',
        ),
    };
  },
});

async function chooseOperator(context: Context, app: App, named: string | undefined): Promise<Operator> {
  if (named !== undefined) return requireOperatorNamed(app, named);
  const operators = await requireSomeOperators(app);
  if (operators.length === 1) return operators[0]!;
  return context.ask.choose(
    'Which operator?',
    'There are several operators: name one with "bsvc console <e-mail>"',
    operators.map((each) => ({ name: each.email, value: each, description: each.role })),
  );
}

/** Best effort: where there is no browser the link is there to be copied. */
function openBrowser(address: string): void {
  const [command, ...words] =
    process.platform === 'darwin'
      ? ['open', address]
      : process.platform === 'win32'
        ? ['rundll32', 'url.dll,FileProtocolHandler', address]
        : ['xdg-open', address];
  spawn(command, words, { stdio: 'ignore', detached: true })
    .on('error', () => undefined)
    .unref();
}
