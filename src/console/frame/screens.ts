import type { ComponentType } from 'preact';
import type { IconName } from '../parts/icon.js';
import { linkTo } from '../routes.js';
import { Collections } from '../collections/collections.js';
import { Documents } from '../documents/documents.js';
import { SignInSettings } from '../auth/sign-in-settings.js';
import { Users } from '../users/users.js';
import { Files } from '../files/files.js';
import { Query } from '../query/query.js';
import { Keys } from '../screens/keys.js';
import { ProjectSettings } from '../project/project.js';
import { Backups } from '../screens/backups.js';
import { Operators } from '../screens/operators.js';
import { ServerSettings } from '../screens/server-settings.js';
import { Storage } from '../screens/storage.js';
import { Account } from '../screens/account.js';
import { OwnCode } from '../screens/own-code.js';
import { Audit } from '../screens/audit.js';
import { Jobs } from '../screens/jobs.js';
import { Overview } from '../screens/overview.js';
import { Mail } from '../email/mail.js';
import { Requests } from '../screens/requests.js';
import { Webhooks } from '../webhooks/webhooks.js';

export interface Screen {
  /** In the address: below the project's for screens of a project. */
  path: string;
  name: string;
  icon: IconName;
  /** Typed after `g`. */
  key: string;
  view: ComponentType;
  ofProject?: boolean;
  /** For operators of all projects alone. */
  forAll?: boolean;
}

/**
 * The navigation, in its order. All screens are of one script: a screen that comes by itself would be waited for before
 * it can ask for what it shows.
 */
export const GROUPS: readonly { name: string; screens: readonly Screen[] }[] = [
  { name: '', screens: [{ path: '', name: 'Overview', icon: 'overview', key: 'o', view: Overview }] },
  {
    name: 'Data',
    screens: [
      { path: 'documents', name: 'Documents', icon: 'documents', key: 'd', ofProject: true, view: Documents },
      { path: 'collections', name: 'Collections', icon: 'collections', key: 'c', ofProject: true, view: Collections },
      { path: 'query', name: 'Query', icon: 'query', key: 'x', ofProject: true, view: Query },
      { path: 'files', name: 'Files', icon: 'files', key: 'f', ofProject: true, view: Files },
    ],
  },
  {
    name: 'People',
    screens: [
      { path: 'users', name: 'Users', icon: 'users', key: 'u', ofProject: true, view: Users },
      { path: 'sign-in', name: 'Sign-in', icon: 'signin', key: 's', ofProject: true, view: SignInSettings },
      { path: 'operators', name: 'Operators', icon: 'operators', key: 'r', forAll: true, view: Operators },
    ],
  },
  {
    name: 'Traffic',
    screens: [
      { path: 'requests', name: 'Requests', icon: 'requests', key: 'q', forAll: true, view: Requests },
      { path: 'webhooks', name: 'Webhooks', icon: 'webhooks', key: 'w', ofProject: true, view: Webhooks },
      { path: 'own-code', name: 'Own code', icon: 'code', key: 'h', ofProject: true, view: OwnCode },
      { path: 'mail', name: 'Email', icon: 'mail', key: 'm', ofProject: true, view: Mail },
      { path: 'jobs', name: 'Jobs', icon: 'jobs', key: 'j', forAll: true, view: Jobs },
      { path: 'audit', name: 'Audit', icon: 'audit', key: 'a', view: Audit },
    ],
  },
  {
    name: 'Settings',
    screens: [
      { path: 'keys', name: 'API keys', icon: 'keys', key: 'k', ofProject: true, view: Keys },
      { path: 'storage', name: 'Storage', icon: 'storage', key: 'b', ofProject: true, view: Storage },
      { path: 'settings', name: 'Project', icon: 'project', key: 'p', ofProject: true, view: ProjectSettings },
      { path: 'backups', name: 'Backups', icon: 'backups', key: 'n', forAll: true, view: Backups },
      { path: 'server', name: 'Server', icon: 'server', key: 'v', forAll: true, view: ServerSettings },
      { path: 'account', name: 'Account', icon: 'account', key: 'y', view: Account },
    ],
  },
];

export const SCREENS = GROUPS.flatMap(({ screens }) => screens);

/** The screen at a place; undefined where there is none. */
export function screenAt(parts: readonly string[]): Screen | undefined {
  const [first = '', , name = 'documents'] = parts;
  const path = first === 'p' ? name : first;
  return SCREENS.find((screen) => screen.path === path && (screen.ofProject === true) === (first === 'p'));
}

/** Where a screen is: of a project with its id. */
export const linkToScreen = ({ path, ofProject }: Screen, projectId: string): string =>
  ofProject ? linkTo(['p', projectId, path]) : linkTo(path === '' ? [] : [path]);
