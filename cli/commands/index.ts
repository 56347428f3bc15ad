import type { CommandEntry, CommandGroup, CommandNode, LoadedCommand } from '../shell/command.js';

export const ROOT_EXAMPLES = [
  'bsvc serve --demo',
  'bsvc project create shop',
  'bsvc collection add posts --project shop --field title:String!',
];

type Load = CommandEntry['load'];
const command = (name: string, summary: string, load: Load): CommandEntry => ({ name, summary, load });

/** The summary of a command, alone where the module of the noun has it; or another noun. */
type Verb = string | readonly [summary: string, load: Load] | CommandGroup;

/** The commands of a noun, those that its module has among them. */
function noun<Name extends string = never>(
  name: string,
  summary: string,
  load: (() => Promise<{ default: Record<Name, LoadedCommand> }>) | null,
  verbs: Readonly<Record<NoInfer<Name>, string> & Record<string, Verb>>,
): CommandGroup {
  const own = (verb: string) => async () => ({ default: (await load!()).default[verb as Name] });
  const commands = Object.entries<Verb>(verbs).map(([verb, told]): CommandNode => {
    if (typeof told === 'string') return command(verb, told, own(verb));
    return 'commands' in told ? told : command(verb, ...told);
  });
  return { name, summary, commands };
}

/**
 * Every command of bsvc, in the groups of `bsvc --help`. Modules are imported when they run, so that it starts at once.
 */
export const GROUPS: Readonly<Record<string, readonly CommandNode[]>> = {
  Start: [
    command('serve', 'run the API server, with the background worker inside', () => import('./serve.js')),
    command('init', 'write a bsvc.yaml to start from, and a page on request', () => import('./init.js')),
    noun('project', 'projects: one per application', () => import('./project.js'), {
      create: 'create a project with its first keys',
      list: 'list projects',
      show: 'show settings, usage and limits of a project',
      update: 'change name, plan, allowed domains or limits',
      export: 'write a project as a bsvc.yaml file',
      brief: 'show a project on one page, for coding agents',
      delete: 'delete a project and everything in it',
    }),
    noun('key', 'API keys of a project', () => import('./key.js'), {
      list: 'list keys by id and last characters',
      create: 'create another key, shown once',
      rotate: 'create a new key, the old ones expire',
      revoke: 'revoke a key',
    }),
    command('apply', 'apply a bsvc.yaml file', () => import('./apply.js')),
    command('console', 'print a one-time sign-in link to the console', () => import('./console.js')),
    command('completion', 'print a completion script for bash, zsh or fish', async () => ({
      default: (await import('./completion.js')).createCompletion(COMMANDS),
    })),
  ],
  Data: [
    noun('collection', 'collections of a project: fields, rules, access', () => import('./collection.js'), {
      add: 'register a collection',
      list: 'list collections',
      show: 'show fields and rules of a collection',
      edit: 'change name, fields, indexes and the change log',
      rls: 'set who may access a collection: RLS or rules',
      drop: 'drop a collection and its documents',
    }),
    noun('data', 'documents: bulk import, export, queries', () => import('./data/write.js'), {
      import: ['import documents or users from a file or another service', () => import('./data/import.js')],
      export: ['export documents as NDJSON, JSON or CSV', () => import('./data/export.js')],
      query: ['list, aggregate or watch documents', () => import('./data/query.js')],
      insert: 'insert a document',
      update: 'change fields of one document, or of all that match',
      delete: 'move documents to the trash, or restore one',
      batch: 'run several writes as one transaction',
    }),
    command('file', 'list uploaded files, delete one', () => import('./file.js')),
    noun('hook', 'hooks: your code that runs before and after events', () => import('./hook.js'), {
      add: 'call your code at an event',
      list: 'list hooks with their last calls',
      remove: 'remove a hook',
      test: 'call a hook or a schedule once and show the response',
    }),
    noun(
      'schedule',
      'schedules: your code that runs at certain times',
      async () => ({ default: (await import('./hook.js')).scheduleCommands }),
      {
        add: 'call your code at certain times',
        list: 'list schedules with their last calls',
        remove: 'remove a schedule',
      },
    ),
    noun('webhook', 'webhooks: notify other services of changed documents', () => import('./webhook.js'), {
      add: 'register a webhook, shows its secret once',
      list: 'list webhooks',
      edit: 'change address or events, enable, disable',
      remove: 'remove a webhook',
      test: 'send test.ping and show the response',
      deliveries: 'list deliveries and attempts',
      replay: 'send a delivery again',
      'rotate-secret': 'create a new secret, the old one expires',
    }),
    command('generate', 'write types, API document or client for an app', () => import('./generate.js')),
    noun('agent', 'files that tell coding agents how to build on bsvc', null, {
      install: ['write AGENTS.md and a skill into an application', () => import('./agent.js')],
    }),
  ],
  Access: [
    noun('rules', 'access rules: check them, explain them, test them', () => import('./rules.js'), {
      check: 'check the rules of a project or a file',
      explain: 'explain what rules come to for one user',
      test: 'test the rules of a bsvc.yaml with the cases of a file',
    }),
    noun('operator', 'operators: people who use the console', () => import('./operator.js'), {
      add: 'add an operator, or set the password of one',
      list: 'list operators',
      token: 'create a token, list or revoke sessions and tokens',
      remove: 'remove an operator',
    }),
    noun('secrets', 'keys that encrypt stored secrets and sign tokens', null, {
      rotate: ['encrypt stored secrets with a new key', () => import('./secrets/rotate.js')],
    }),
  ],
  Users: [
    noun('user', 'end users of a project', () => import('./user.js'), {
      list: 'list users, or show one with roles, MFA, identities and sessions',
      create: 'create an account, or invite a user by email',
      update: 'change password or roles, end sessions, disable, reset MFA',
      delete: 'delete an account, with --erase all data of the user',
      social: noun('social', 'sign-in with Google, GitHub or another', () => import('./user/social.js'), {
        list: 'list providers',
        set: 'add a provider, or replace its settings',
        remove: 'remove a provider and keep its users',
      }),
    }),
    noun('mail', 'email of a project: test, logs, outbox, templates', () => import('./mail.js'), {
      test: 'send a test email',
      logs: 'list the latest emails',
      outbox: 'show emails that were stored instead of sent',
      template: noun(
        'template',
        'templates of a project',
        async () => ({ default: (await import('./mail.js')).templateCommands }),
        {
          list: 'list templates, or show one',
          set: 'store or replace a template',
          remove: 'remove a template of the project',
        },
      ),
    }),
    noun('byok', 'a project’s own mail and storage credentials', () => import('./byok.js'), {
      set: 'store the project’s own mail provider key',
      show: 'show the credentials, masked',
      clear: 'remove the credentials',
      bucket: noun(
        'bucket',
        'a project’s own bucket for files',
        async () => ({ default: (await import('./byok.js')).bucketCommands }),
        {
          set: 'store new files in the project’s own bucket',
          show: 'show or check the bucket, set its CORS rules',
          clear: 'remove the bucket',
        },
      ),
    }),
  ],
  Operate: [
    command('doctor', 'check the installation, repair a damaged database', () => import('./doctor.js')),
    command('settings', 'list every setting, its value and where it came from', () => import('./settings.js')),
    command('worker', 'run background jobs and schedules only', () => import('./worker.js')),
    noun('service', 'run bsvc under systemd', null, {
      install: ['write systemd units for the server', () => import('./service/install.js')],
    }),
    command('migrate', 'run pending migrations, or list them', () => import('./migrate.js')),
    command('backup', 'back up everything, while serving; list backups', () => import('./backup.js')),
    command('restore', 'restore from a backup', () => import('./restore.js')),
    command('move-to', 'copy the embedded database to a MongoDB', () => import('./move-to.js')),
    command('jobs', 'list background jobs, retry failed ones', () => import('./jobs.js')),
    command('audit', 'show the audit log', () => import('./audit.js')),
  ],
};

export const COMMANDS: readonly CommandNode[] = Object.values(GROUPS).flat();
