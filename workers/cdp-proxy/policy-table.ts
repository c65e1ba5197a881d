import {
  attachToTarget,
  close,
  createBrowserContext,
  createTarget,
  dispatchDragEvent,
  disposeBrowserContext,
  keptDownloads,
  notFlat,
  type PolicyDecision,
  pageTrace,
  type Rule,
  setAutoAttach,
  setCPUThrottlingRate,
  setDiscoverTargets,
  setFileInputFiles,
  toOpenableAddress,
  withoutHiddenPages,
} from "./policy-rules.ts";

const notThisBrowser = "this would change the browser beyond the session's pages";
const notItsMachine = "a session's browser does not expose its machine";
const sharedPage = "this would block a page that others share";
const ownFrames = "the browser schedules its own frames";
const related = "use Target.setAutoAttach on a session of the target";
const noProtocol = "the DevTools protocol cannot be exposed to a page";

/** Policy of a domain's commands. Each command is listed once. */
interface DomainPolicy {
  /** Forwarded even while a person holds control: read-only commands, and commands that prepare them. */
  readonly reads?: string;
  /** Forwarded unless a person holds control. Refused otherwise. */
  readonly passes?: string;
  /** Decided by a rule or a fixed decision, even while a person holds control. */
  readonly readRules?: Readonly<Record<string, Rule | PolicyDecision>>;
  /** Decided by a rule or a fixed decision unless a person holds control. Refused otherwise. */
  readonly passRules?: Readonly<Record<string, Rule | PolicyDecision>>;
  /** Refused commands, by the reason reported to clients. */
  readonly refuses?: Readonly<Record<string, string>>;
}

/** Newest Chromium major version for which all commands are covered. */
export const coveredChromium = 156;

/**
 * Policy for the commands of the DevTools protocol, by domain. A domain with only a reason is refused completely. `PWA`
 * could open local files in an app, and `Cast` finds devices on the local network.
 */
export const domains: Readonly<Record<string, DomainPolicy | string>> = {
  Accessibility: {
    reads: "disable enable getFullAXTree getPartialAXTree",
    passes: "getAXNodeAndAncestors getChildAXNodes getRootAXNode queryAXTree",
  },
  Ads: { passes: "getAdMetrics getAdScripts" },
  Animation: {
    passes: `
      disable enable getCurrentTime getPlaybackRate releaseAnimations resolveAnimation seekAnimations setPaused
      setPlaybackRate setTiming`,
  },
  Audits: { passes: "checkFormsIssues disable enable getEncodedResponse" },
  Autofill: { passes: "disable enable setAddresses trigger" },
  BackgroundService: { passes: "clearEvents setRecording startObserving stopObserving" },
  BluetoothEmulation: {
    passes: `
      addCharacteristic addDescriptor addService disable enable removeCharacteristic removeDescriptor removeService
      setSimulatedCentralState simulateAdvertisement simulateCharacteristicOperationResponse
      simulateDescriptorOperationResponse simulateGATTDisconnection simulateGATTOperationResponse
      simulatePreconnectedPeripheral`,
  },
  Browser: {
    reads: "getVersion getWindowForTarget",
    passes: `
      cancelDownload getGlobalPrivacyControl getWindowBounds grantPermissions resetPermissions setContentsSize
      setDockTile setPermission setWindowBounds`,
    readRules: { setDownloadBehavior: keptDownloads },
    passRules: { close },
    refuses: {
      [notThisBrowser]: `
      addMockCamera addPrivacySandboxEnrollmentOverride crash crashGpuProcess executeBrowserCommand
      setGlobalPrivacyControl`,
      [notItsMachine]: "getBrowserCommandLine getHistogram getHistograms",
    },
  },
  CSS: {
    passes: `
      addRule collectClassNames createStyleSheet disable enable forcePseudoState forceStartingStyle
      getAnimatedStylesForNode getBackgroundColors getComputedStyleForNode getEnvironmentVariables
      getInlineStylesForNode getLayersForNode getLocationForSelector getLonghandProperties getMatchedStylesForNode
      getMediaQueries getPlatformFontsForNode getStyleSheetText resolveValues setContainerQueryConditionText
      setContainerQueryText setEffectivePropertyValueForNode setKeyframeKey setLocalFontsEnabled setMediaText
      setNavigationText setPropertyRulePropertyName setRuleSelector setScopeText setStyleSheetText setStyleTexts
      setSupportsText startRuleUsageTracking stopRuleUsageTracking takeComputedStyleUpdates takeCoverageDelta
      trackComputedStyleUpdates trackComputedStyleUpdatesForNode`,
  },
  CacheStorage: { passes: "deleteCache deleteEntry requestCacheNames requestCachedResponse requestEntries" },
  Cast: notItsMachine,
  Console: { passes: "clearMessages disable enable" },
  CrashReportContext: { passes: "getEntries" },
  DOM: {
    reads: `
      describeNode disable enable getBoxModel getContentQuads getDocument getFlattenedDocument getOuterHTML
      querySelector querySelectorAll`,
    passes: `
      clearTextMarkers collectClassNamesFromSubtree copyTo discardSearchResults focus forceShowInterest
      forceShowPopover getAnchorElement getAttributes getContainerForNode getDetachedDomNodes getElementByRelation
      getFrameOwner getImplicitAnchorCandidates getNodeForLocation getNodeStackTraces getNodesForSubtreeByStyle
      getQueryingDescendantsForContainer getRelayoutBoundary getSearchResults getTopLayerElements hideHighlight
      highlightNode highlightRect markUndoableState moveTo performSearch pushNodeByPathToFrontend
      pushNodesByBackendIdsToFrontend redo removeAttribute removeNode requestChildNodes requestNode resolveNode
      scrollIntoViewIfNeeded setAttributeValue setAttributesAsText setInspectedNode setNodeName
      setNodeStackTracesEnabled setNodeValue setOuterHTML setTextMarker undo`,
    passRules: { setFileInputFiles },
    refuses: { [notItsMachine]: "getFileInfo" },
  },
  DOMDebugger: {
    passes: `
      getEventListeners removeDOMBreakpoint removeEventListenerBreakpoint removeInstrumentationBreakpoint
      removeXHRBreakpoint setBreakOnCSPViolation setDOMBreakpoint setEventListenerBreakpoint
      setInstrumentationBreakpoint setXHRBreakpoint`,
  },
  DOMSnapshot: { reads: "captureSnapshot disable enable", passes: "getSnapshot" },
  DOMStorage: { passes: "clear disable enable getDOMStorageItems removeDOMStorageItem setDOMStorageItem" },
  Debugger: {
    passes: `
      continueToLocation disable disassembleWasmModule enable evaluateOnCallFrame getPossibleBreakpoints
      getScriptSource getStackTrace getWasmBytecode nextWasmDisassemblyChunk pause pauseOnAsyncCall removeBreakpoint
      restartFrame resume searchInContent setAsyncCallStackDepth setBlackboxExecutionContexts setBlackboxPatterns
      setBlackboxedRanges setBreakpoint setBreakpointByUrl setBreakpointOnFunctionCall setBreakpointsActive
      setInstrumentationBreakpoint setPauseOnExceptions setReturnValue setScriptSource setSkipAllPauses
      setVariableValue stepInto stepOut stepOver`,
  },
  DeviceAccess: { passes: "cancelPrompt disable enable selectPrompt" },
  DeviceOrientation: { passes: "clearDeviceOrientationOverride setDeviceOrientationOverride" },
  DigitalCredentials: { passes: "setVirtualWalletBehavior" },
  Emulation: {
    passes: `
      addScreen canEmulate clearDeviceMetricsOverride clearDevicePostureOverride clearDisplayFeaturesOverride
      clearGeolocationOverride clearIdleOverride getOverriddenSensorInformation getScreenInfos removeScreen
      resetPageScaleFactor setAutoDarkModeOverride setAutomationOverride setCPUPerformanceOverride
      setDataSaverOverride setDefaultBackgroundColorOverride setDeviceMetricsOverride
      setDevicePostureOverride setDisabledImageTypes setDisplayFeaturesOverride setDocumentCookieDisabled
      setEmitTouchEventsForMouse setEmulatedMedia setEmulatedOSTextScale setEmulatedVisionDeficiency
      setFocusEmulationEnabled setGeolocationOverride setHardwareConcurrencyOverride setIdleOverride setLocaleOverride
      setNavigatorOverrides setPageScaleFactor setPressureSourceOverrideEnabled setPressureStateOverride
      setPrimaryScreen setSafeAreaInsetsOverride setScriptExecutionDisabled setScrollbarsHidden
      setSensorOverrideEnabled setSensorOverrideReadings setSmallViewportHeightDifferenceOverride setTimezoneOverride
      setTouchEmulationEnabled setUserAgentOverride setVirtualKeyboardGeometryOverride setVisibleSize updateScreen`,
    passRules: { setCPUThrottlingRate },
    refuses: { [sharedPage]: "setVirtualTimePolicy" },
  },
  EventBreakpoints: { passes: "disable removeInstrumentationBreakpoint setInstrumentationBreakpoint" },
  Extensions: notThisBrowser,
  FedCm: { passes: "clickDialogButton disable dismissDialog enable openUrl resetCooldown selectAccount" },
  Fetch: {
    passes: `
      continueRequest continueResponse continueWithAuth disable enable failRequest fulfillRequest getResponseBody
      takeResponseBodyAsStream`,
  },
  FileSystem: { passes: "getDirectory" },
  FindInPage: { passes: "findFirst findNext findPrev stop" },
  HeadlessExperimental: ownFrames,
  HeapProfiler: {
    passes: `
      addInspectedHeapObject collectGarbage disable enable getHeapObjectId getObjectByHeapObjectId getSamplingProfile
      startSampling startTrackingHeapObjects stopSampling stopTrackingHeapObjects takeHeapSnapshot`,
  },
  IO: { passes: "close read resolveBlob" },
  IndexedDB: {
    passes: `
      clearObjectStore deleteDatabase deleteObjectStoreEntries disable enable getMetadata requestData requestDatabase
      requestDatabaseNames`,
  },
  Input: {
    passes: `
      cancelDragging dispatchKeyEvent dispatchMouseEvent dispatchTouchEvent emulateTouchFromMouseEvent
      imeSetComposition insertText setIgnoreInputEvents setInterceptDrags synthesizePinchGesture
      synthesizeScrollGesture synthesizeTapGesture`,
    passRules: { dispatchDragEvent },
  },
  Inspector: { passes: "disable enable" },
  LayerTree: {
    passes: `
      compositingReasons disable enable loadSnapshot makeSnapshot profileSnapshot releaseSnapshot replaySnapshot
      snapshotCommandLog`,
  },
  Log: { reads: "disable enable", passes: "clear startViolationsReport stopViolationsReport" },
  Media: { passes: "disable enable" },
  Memory: {
    passes: `
      forciblyPurgeJavaScriptMemory getDOMCounters getDOMCountersForLeakDetection prepareForLeakDetection`,
    refuses: {
      [notItsMachine]: `
      getAllTimeSamplingProfile getBrowserSamplingProfile getSamplingProfile startSampling stopSampling`,
      [notThisBrowser]: "setPressureNotificationsSuppressed simulatePressureNotification",
    },
  },
  Network: {
    reads: "disable enable getCookies getResponseBody",
    passes: `
      canClearBrowserCache canClearBrowserCookies canEmulateNetworkConditions clearBrowserCache clearBrowserCookies
      configureDurableMessages deleteCookies deleteDeviceBoundSession emulateNetworkConditions
      emulateNetworkConditionsByRule enableDeviceBoundSessions enableReportingApi fetchSchemefulSite getAllCookies
      getCertificate getRequestPostData getSecurityIsolationStatus overrideNetworkState replayXHR searchInResponseBody
      setAttachDebugStack setBlockedURLs setBypassServiceWorker setCacheDisabled setCookie setCookieControls
      setCookies setExtraHTTPHeaders setUserAgentOverride streamResourceContent`,
    passRules: { loadNetworkResource: toOpenableAddress },
  },
  Overlay: {
    passes: `
      disable enable getGridHighlightObjectsForTest getHighlightObjectForTest getSourceOrderHighlightObjectForTest
      hideHighlight highlightFrame highlightNode highlightQuad highlightRect highlightSourceOrder setInspectMode
      setPausedInDebuggerMessage setShowAdHighlights setShowContainerQueryOverlays setShowDebugBorders
      setShowDisplayCutout setShowFPSCounter setShowFlexOverlays setShowGridOverlays setShowHinge
      setShowHitTestBorders setShowInspectedElementAnchor setShowIsolatedElements setShowLayoutShiftRegions
      setShowPaintRects setShowScrollBottleneckRects setShowScrollSnapOverlays setShowViewportSizeOnResize
      setShowWebVitals setShowWindowControlsOverlay`,
  },
  PWA: notThisBrowser,
  Page: {
    reads: `
      captureScreenshot captureSnapshot disable enable getFrameTree getLayoutMetrics getNavigationHistory
      setLifecycleEventsEnabled`,
    passes: `
      addCompilationCache addScriptToEvaluateOnLoad addScriptToEvaluateOnNewDocument bringToFront
      clearCompilationCache clearDeviceMetricsOverride clearDeviceOrientationOverride clearGeolocationOverride crash close
      createIsolatedWorld deleteCookie generateTestReport getAdScriptAncestry getAnnotatedPageContent getAppId
      getAppManifest getInstallabilityErrors getManifestIcons getOriginTrials getPermissionsPolicyState
      getResourceContent getResourceTree handleJavaScriptDialog navigateToHistoryEntry printToPDF
      produceCompilationCache reload removeScriptToEvaluateOnLoad removeScriptToEvaluateOnNewDocument
      resetNavigationHistory screencastFrameAck searchInResource setAdBlockingEnabled setBypassCSP
      setDeviceMetricsOverride setDeviceOrientationOverride setDocumentContent setFontFamilies setFontSizes
      setGeolocationOverride setInterceptFileChooserDialog setPrerenderingAllowed setRPHRegistrationMode
      setSPCTransactionMode setTouchEmulationEnabled setWebLifecycleState startScreenRecording startScreencast
      stopLoading stopScreenRecording stopScreencast`,
    passRules: { navigate: toOpenableAddress, setDownloadBehavior: keptDownloads },
    refuses: { [sharedPage]: "waitForDebugger", [notThisBrowser]: "getSiblingSubApps getSubApps" },
  },
  Performance: { reads: "disable enable getMetrics", passes: "setTimeDomain" },
  PerformanceTimeline: { passes: "enable" },
  Preload: { passes: "disable enable" },
  Profiler: {
    passes: `
      disable enable getBestEffortCoverage setSamplingInterval start startPreciseCoverage stop stopPreciseCoverage
      takePreciseCoverage`,
  },
  Runtime: {
    reads: "disable enable runIfWaitingForDebugger",
    passes: `
      addBinding awaitPromise callFunctionOn compileScript discardConsoleEntries evaluate getExceptionDetails
      getHeapUsage getIsolateId getProperties globalLexicalScopeNames queryObjects releaseObject releaseObjectGroup
      removeBinding runScript setAsyncCallStackDepth setCustomObjectFormatterEnabled setMaxCallStackSizeToCapture
      terminateExecution`,
  },
  Schema: { passes: "getDomains" },
  Security: {
    passes: "disable enable setIgnoreCertificateErrors",
    refuses: { [sharedPage]: "handleCertificateError setOverrideCertificateErrors" },
  },
  ServiceWorker: {
    passes: `
      deliverPushMessage disable dispatchPeriodicSyncEvent dispatchSyncEvent enable setForceUpdateOnPageLoad
      skipWaiting startWorker stopAllWorkers stopWorker unregister updateRegistration`,
  },
  SmartCardEmulation: notItsMachine,
  Storage: {
    reads: "getCookies",
    passes: `
      clearCookies clearDataForOrigin clearDataForStorageKey clearPrivateVerificationTokens clearTrustTokens
      deletePrivateVerificationToken deleteStorageBucket getPrivateVerificationTokens
      getPrivateVerificationTokensIssuerConfigs getStorageKey getStorageKeyForFrame getTrustTokens getUsageAndQuota
      overrideQuotaForOrigin setCookies setPrivateVerificationTokensTracking setStorageBucketTracking
      trackCacheStorageForOrigin trackCacheStorageForStorageKey trackIndexedDBForOrigin trackIndexedDBForStorageKey
      untrackCacheStorageForOrigin untrackCacheStorageForStorageKey untrackIndexedDBForOrigin
      untrackIndexedDBForStorageKey`,
    refuses: { [notThisBrowser]: "runBounceTrackingMitigations" },
  },
  SystemInfo: notItsMachine,
  Target: {
    reads: "attachToBrowserTarget detachFromTarget getBrowserContexts getTargetInfo",
    passes: "activateTarget closeTarget getDevToolsTarget",
    readRules: { attachToTarget, getTargets: withoutHiddenPages, setAutoAttach, setDiscoverTargets },
    passRules: { createBrowserContext, createTarget, disposeBrowserContext },
    refuses: {
      [related]: "autoAttachRelated",
      [noProtocol]: "exposeDevToolsProtocol",
      [notThisBrowser]: "openDevTools setRemoteLocations",
      [notFlat]: "sendMessageToTarget",
    },
  },
  Tethering: notThisBrowser,
  Tracing: {
    passes: "end getCategories getTrackEventDescriptor recordClockSyncMarker",
    passRules: { start: pageTrace },
    refuses: { [notThisBrowser]: "requestMemoryDump" },
  },
  WebAudio: { passes: "disable enable getRealtimeData" },
  WebAuthn: {
    passes: `
      addCredential addVirtualAuthenticator clearCredentials disable enable getCredential getCredentials
      removeCredential removeVirtualAuthenticator setAutomaticPresenceSimulation setCredentialProperties
      setResponseOverrideBits setUserVerified`,
  },
  WebMCP: { passes: "cancelInvocation disable enable invokeTool" },
};
