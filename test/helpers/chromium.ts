import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Browser as Chromium } from 'playwright-core';
import { WebSocket } from 'undici';
import { eventually } from './eventually.js';
import { openTempDir } from './temp-dir.js';
import { use } from './use.js';

/** Path of a Chromium on this machine, or null; a test that needs one is then skipped and says so. */
export const CHROMIUM: string | null =
  ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'].find((path) => existsSync(path)) ?? null;

if (!CHROMIUM) console.warn('browser test skipped: no Chromium on this machine (apt-get install chromium)');

/** A browser that all tests of a file share; where there is none, they have to be skipped. */
export async function useChromium(): Promise<Chromium> {
  if (!CHROMIUM) return undefined as never;
  const { chromium } = await import('playwright-core');
  return use(await chromium.launch({ executablePath: CHROMIUM, args: ['--no-sandbox', '--disable-gpu'] }));
}

const flags = (profile: string): string[] => [
  '--headless',
  '--no-sandbox',
  '--disable-gpu',
  '--disable-dev-shm-usage',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
  `--user-data-dir=${profile}`,
];

export interface Browser {
  close(): Promise<void>;
}

/** Opens `url` in a headless browser with a profile of its own. It reports to nobody: the page must. */
export async function openInBrowser(url: string): Promise<Browser> {
  const { close } = await startBrowser(url);
  return { close };
}

async function startBrowser(url: string): Promise<Browser & { profile: string }> {
  const profile = await openTempDir();
  // Headless ends by itself once it has nothing to do; a debugging port keeps it.
  const words = [...flags(profile.path), '--remote-debugging-port=0', url];
  const child = spawn(CHROMIUM!, words, { stdio: 'ignore', detached: true });
  return {
    profile: profile.path,
    async close() {
      if (child.exitCode === null && child.signalCode === null) {
        const ended = once(child, 'exit');
        // Its whole process group, which is ours alone.
        process.kill(-child.pid!, 'SIGKILL');
        await ended;
      }
      await profile.remove();
    },
  };
}

export interface DrivenPage extends Browser {
  /** The value of an expression in the page, awaited; throws what it throws. */
  evaluate<T>(expression: string): Promise<T>;
  /** Leads the page to another address, and waits until that one has begun. */
  visit(url: string): Promise<void>;
  /** Waits until the expression is true in the page. */
  until(expression: string): Promise<void>;
  /** Takes the network away from the page, or gives it back. */
  setOffline(isOffline: boolean): Promise<void>;
}

/** Opens `url` in a headless browser and works in the page by expressions, through the browser's debugging port. */
export async function drivePage(url: string): Promise<DrivenPage> {
  const browser = await startBrowser(url);
  const targets = await eventually('the browser tells its pages', async () => {
    const port = (await readFile(join(browser.profile, 'DevToolsActivePort'), 'utf8').catch(() => '')).split('\n')[0];
    if (!port) return null;
    const list = (await (await fetch(`http://127.0.0.1:${port}/json/list`)).json()) as Target[];
    return list.some(({ type }) => type === 'page') ? list : null;
  });
  const socket = new WebSocket(targets.find(({ type }) => type === 'page')!.webSocketDebuggerUrl);
  await once(socket as never, 'open');
  const waiting = new Map<number, (reply: EvaluateReply) => void>();
  socket.addEventListener('message', ({ data }) => {
    const reply = JSON.parse(String(data)) as EvaluateReply;
    waiting.get(reply.id)?.(reply);
    waiting.delete(reply.id);
  });
  let last = 0;
  const command = async (method: string, params: object): Promise<EvaluateReply> => {
    const id = ++last;
    const answered = new Promise<EvaluateReply>((resolve) => waiting.set(id, resolve));
    socket.send(JSON.stringify({ id, method, params }));
    return answered;
  };
  const evaluate = async <T>(expression: string): Promise<T> => {
    const params = { expression, awaitPromise: true, returnByValue: true, userGesture: true };
    const { result, error } = await command('Runtime.evaluate', params);
    const thrown = error?.message ?? result?.exceptionDetails?.exception?.description;
    if (thrown !== undefined) throw new Error(`in the page: ${thrown}`);
    return result!.result.value as T;
  };
  return {
    evaluate,
    async visit(address) {
      const { error } = await command('Page.navigate', { url: address });
      if (error) throw new Error(`${address}: ${error.message}`);
    },
    async until(expression) {
      const look = (): Promise<boolean> =>
        evaluate<boolean>(`Boolean(${expression})`).catch((error: Error) => {
          // The page went on to another one during the look.
          if (/navigated|context was destroyed|find context/.test(error.message)) return false;
          throw error;
        });
      await eventually(expression, look);
    },
    async setOffline(offline) {
      const limits = { latency: 0, downloadThroughput: -1, uploadThroughput: -1 };
      await command('Network.enable', {});
      await command('Network.emulateNetworkConditions', { offline, ...limits });
    },
    async close() {
      socket.close();
      await browser.close();
    },
  };
}

interface Target {
  type: string;
  webSocketDebuggerUrl: string;
}

interface EvaluateReply {
  id: number;
  error?: { message: string };
  result?: { result: { value?: unknown }; exceptionDetails?: { exception?: { description?: string } } };
}
