/** A network of one client, that a test takes away and gives back. */
export interface TestNetwork {
  fetch: typeof fetch;
  isOn: boolean;
  /** Whether the answer to the next write is lost on the way, after the service has carried it out. */
  losesAnswer: () => boolean;
}

export function openTestNetwork(): TestNetwork {
  const network: TestNetwork = {
    isOn: true,
    losesAnswer: () => false,
    async fetch(address, init) {
      if (!network.isOn) throw new TypeError('no network');
      const response = await fetch(address, init);
      const isRead = init?.method === 'GET' || String(address).endsWith('/realtime');
      if (!network.isOn || (!isRead && network.losesAnswer())) {
        await response.body?.cancel();
        throw new TypeError('the answer is lost');
      }
      return response;
    },
  };
  return network;
}
